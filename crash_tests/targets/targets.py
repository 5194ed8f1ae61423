"""The targets that can be named on the command line and in reproducers, by their short tags."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crash_tests.targets.atomic_file import atomic_file
from crash_tests.targets.event_log import framed, pending
from crash_tests.targets.lifecycle import lifecycle
from crash_tests.targets.runtime import runtime, runtime_pending
from crash_tests.targets.session_store import session_store
from powercut.fuzz.target import MakeTarget
from sim.errors import HarnessError

TARGETS: Final[Mapping[str, MakeTarget]] = MappingProxyType(
    {
        "atomic-file": atomic_file,
        "event-log-framed": framed,
        "event-log-pending": pending,
        "session-store": session_store,
        "lifecycle": lifecycle,
        "runtime": runtime,
        "runtime-pending": runtime_pending,
    }
)


def target_named(tag: str) -> MakeTarget:
    """Return what makes the target of this tag; ``HarnessError`` names the known tags."""
    try:
        return TARGETS[tag]
    except KeyError:
        known = ", ".join(TARGETS)
        raise HarnessError(f"unknown target {tag!r}; known are {known}") from None
