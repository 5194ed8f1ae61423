"""The targets of ``powercut run``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crash_tests.targets.targets import TARGETS as SUBJECTS
from crash_tests.targets.targets import target_named as make_target_named
from oracles.marks import Mark
from powercut.fuzz.target import MakeTarget
from sim.disk.crash.persistence import PersistenceModel


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """``make_target`` starts a run of it; a campaign under ``posix`` can reach all ``marks``.

    A campaign of a minute may miss those that are ``rare``.
    ``turn``: how many steps it is given in each turn of a campaign of several targets.
    """

    tag: str
    make_target: MakeTarget
    marks: tuple[Mark, ...]
    turn: int = 300
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
    make_target = make_target_named(tag)
    target = make_target()
    return TargetEntry(
        tag,
        make_target,
        tuple(target.expected_marks),
        target.turn_steps,
        tuple(target.rare_marks),
    )
