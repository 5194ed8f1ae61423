"""The targets that can be named on the command line and in reproducers, by their short tags."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from powercut.machines.atomic_file import atomic_file
from powercut.machines.event_log import framed, pending
from powercut.machines.lifecycle import lifecycle
from powercut.machines.runtime import runtime, runtime_pending
from powercut.machines.session_store import session_store
from powercut.subject import MakeSubject
from sim.errors import HarnessError

TARGETS: Final[Mapping[str, MakeSubject]] = MappingProxyType(
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


def target_named(tag: str) -> MakeSubject:
    """Return what makes the subject of this tag; ``HarnessError`` names the known tags."""
    try:
        return TARGETS[tag]
    except KeyError:
        known = ", ".join(TARGETS)
        raise HarnessError(f"unknown target {tag!r}; known are {known}") from None
