"""The targets of ``powercut run``: each machine, and the marks that a campaign of it must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from crash_tests.targets.targets import TARGETS as SUBJECTS
from crash_tests.targets.targets import target_named as make_target_named
from oracles.marks import Mark
from powercut.fuzz.target import MakeTarget
from sim.disk.crash.persistence import PersistenceModel

_EVERYWHERE: Final = (
    Mark.KILLED,
    Mark.POWER_CUT_LOST,
    Mark.POWER_CUT_KEPT,
    Mark.TORN,
    Mark.NESTED_CRASH,
    Mark.DEEP_CRASH,
    Mark.IN_FLIGHT_KEPT,
    Mark.IN_FLIGHT_LOST,
    Mark.STALE_TEMPORARY_SWEPT,
    Mark.FAULT_FIRED,
    Mark.RECOVERY_FAILED,
)
_LOG: Final = (
    *_EVERYWHERE,
    Mark.TORN_TAIL_TRUNCATED,
    Mark.QUARANTINED,
    Mark.STOPPED_BY_SYNC,
)
_RUNTIME: Final = (
    *_EVERYWHERE,
    Mark.NESTED_CRASH_WITH_AGENTS,
    Mark.TORN_TAIL_TRUNCATED,
    Mark.ACTIVE_SUSPENDED,
    Mark.STOPPED_BY_SYNC,
    Mark.REDELIVERED,
    Mark.DEAD_LETTER,
    Mark.BOUNCED,
    Mark.SPAWN_REDONE,
    Mark.OUTBOX_REDONE,
    Mark.CONTROL_REDONE,
    Mark.NOTICE_REDONE,
    Mark.TERMINATION_FINISHED,
    Mark.ORPHAN_REMOVED,
    Mark.LOST_TURN_TOLD,
    Mark.PERMITTED_TURN,
    Mark.REMINDER_AFTER_CRASH,
    Mark.STOPPED_SESSION_BACK,
    Mark.PROVIDER_FAULT,
    Mark.CALL_GIVEN_UP,
)
_MARKS: Final[Mapping[str, tuple[Mark, ...]]] = MappingProxyType(
    {
        "atomic-file": _EVERYWHERE,
        "event-log-framed": _LOG,
        "event-log-pending": (*_LOG, Mark.PENDING_REPLAYED, Mark.PENDING_REJECTED),
        "session-store": (*_EVERYWHERE, Mark.ACTIVE_SUSPENDED, Mark.QUARANTINED),
        # What it looks at is what the plainest run does.
        "lifecycle": (),
        "runtime": _RUNTIME,
        "runtime-pending": _RUNTIME,
    }
)


_RARE: Final = (
    Mark.DEAD_LETTER,
    Mark.BOUNCED,
    Mark.CONTROL_REDONE,
    Mark.NOTICE_REDONE,
    Mark.PERMITTED_TURN,
    Mark.STOPPED_SESSION_BACK,
)
"""Reached by fewer than one run of the runtime in forty."""

_TURNS: Final[Mapping[str, int]] = MappingProxyType({"runtime": 1200, "runtime-pending": 600})
_PARTS_TURN: Final = 300


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """``make_target`` starts a run of it; a campaign under ``posix`` can reach all ``marks``.

    A campaign of a minute may miss those that are ``rare``.
    ``turn``: how many steps it is given in each turn of a campaign of several targets.
    """

    tag: str
    make_target: MakeTarget
    marks: tuple[Mark, ...]
    turn: int = _PARTS_TURN
    rare: tuple[Mark, ...] = ()

    def under(self, model: PersistenceModel) -> TargetEntry:
        """Return this target with the marks that ``model`` lets a campaign reach."""
        if model.torn_units:
            return self
        return replace(self, marks=tuple(mark for mark in self.marks if mark is not Mark.TORN))


def all_targets() -> tuple[TargetEntry, ...]:
    """Return every built-in target."""
    return tuple(entry_named(tag) for tag in SUBJECTS)


def entry_named(tag: str) -> TargetEntry:
    """Return the target of this tag; ``HarnessError`` names the known ones."""
    return TargetEntry(
        tag,
        make_target_named(tag),
        _MARKS.get(tag, _EVERYWHERE),
        _TURNS.get(tag, _PARTS_TURN),
        _RARE,
    )
