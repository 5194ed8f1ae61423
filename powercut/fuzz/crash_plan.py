"""Planned crashes: where to crash an action that has not run yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from faults.crash_point import CrashKind, Phase
from powercut.fuzz.action import Json
from sim.choices import Choices
from sim.disk.cache.inode import BLOCK_BYTES

DEEPEST: Final = 4
"""The most crashes in a row that one action proposes."""

_PHASES: Final = tuple(Phase)
_FIRST_GUESS: Final = 8
_MOST_PAGES: Final = 2


@dataclass(frozen=True, slots=True)
class PlannedCrash:
    """Crash in this phase of the ``operation``-th mutating operation from now, from 1.

    ``operation`` 0, or a number that is never reached, crashes after the action has returned.
    ``kept`` is the number of bytes that a write has stored when it is killed ``during`` it,
    0 for all of them.
    """

    operation: int
    phase: Phase
    kind: CrashKind
    kept: int = 0

    def plain(self) -> dict[str, Json]:
        """Return it as JSON data; ``of_plain`` reads it back."""
        return {
            "operation": self.operation,
            "phase": str(self.phase),
            "kind": str(self.kind),
            "kept": self.kept,
        }

    @classmethod
    def of_plain(cls, plain: object) -> PlannedCrash:
        """Read the result of ``plain``; ``ValueError`` for anything else."""
        match plain:
            case {
                "operation": int(operation),
                "phase": str(phase),
                "kind": str(kind),
                "kept": int(kept),
            }:
                return cls(operation, Phase(phase), CrashKind(kind), kept)
        raise ValueError(f"not a planned crash: {plain!r}")


class CrashPlanner:
    """Proposes planned crashes within the usual length of an action.

    It remembers the number of operations that each kind of action took last, so that few
    planned crashes lie behind its end.
    """

    __slots__ = ("_operations",)

    def __init__(self) -> None:
        self._operations: dict[str, int] = {}

    def took(self, name: str, operations: int) -> None:
        """Record that ``name`` has returned after so many mutating operations."""
        self._operations[name] = operations

    def propose(self, choices: Choices, name: str) -> PlannedCrash:
        """Choose one crash of ``name``; the simplest is a kill after it has returned."""
        kind = CrashKind.POWER_CUT if choices.integer("kind", 0, 3) else CrashKind.KILL
        most = self._operations.get(name, _FIRST_GUESS)
        operation = choices.integer("operation", 0, most)
        if not operation:
            return PlannedCrash(0, Phase.AFTER, kind)
        phase = choices.pick("phase", _PHASES)
        kept = 0
        if kind is CrashKind.KILL and phase is Phase.DURING:
            kept = choices.integer("pages", 0, _MOST_PAGES) * BLOCK_BYTES
        return PlannedCrash(operation, phase, kind, kept)


def again(choices: Choices, depth: int) -> bool:
    """Choose whether the recovery from crash number ``depth`` is crashed too."""
    return depth < DEEPEST and choices.integer("again", 0, 3) == 3


def planned(arguments: Mapping[str, Json]) -> tuple[PlannedCrash, ...]:
    """Read the planned crashes of a ``crash_and_recover``; ``ValueError`` if there is none."""
    crashes = arguments["crashes"]
    if not isinstance(crashes, list) or not crashes:
        raise ValueError(f"no planned crashes: {crashes!r}")
    return tuple(PlannedCrash.of_plain(crash) for crash in crashes)
