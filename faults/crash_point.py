"""A crash point: where and how a crash happens, as plain data that prints and parses back.

``12 during power-cut lost=0,3 torn=4:100 stale=0`` means: the power was cut during operation 12
of the lifetime; of the unsynced micro-operations, 0 and 3 were lost, number 4 kept 100 of its
bytes, and number 0 left stale bytes in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError

NOTHING_LOST: Final = SurvivorSet()


class Phase(StrEnum):
    """The part of an operation that had happened at the crash."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class CrashKind(StrEnum):
    """The end of the process, or of the machine."""

    KILL = "kill"
    POWER_CUT = "power-cut"


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """One crash of one lifetime.

    ``operation`` is the number of the mutating operation in its lifetime, from 1.
    ``survivors`` are the unsynced micro-operations that a power cut left; a kill loses none.
    ``kept`` is the number of bytes of a write that had reached the page cache when a kill
    came ``during`` it, or 0 for all of them.

    Raises ``HarnessError`` for a combination that has no meaning.
    """

    operation: int
    phase: Phase
    kind: CrashKind
    survivors: SurvivorSet = NOTHING_LOST
    kept: int = 0

    def __post_init__(self) -> None:
        if self.operation < 1:
            raise HarnessError(f"operations count from 1, got operation={self.operation}")
        if self.kept < 0:
            raise HarnessError(f"a write cannot keep kept={self.kept} bytes")
        if self.kept and (self.kind, self.phase) != (CrashKind.KILL, Phase.DURING):
            raise HarnessError(f"kept={self.kept} belongs to a kill during a write")
        if self.kind is CrashKind.KILL and self.survivors != NOTHING_LOST:
            raise HarnessError(f"a kill loses nothing, got survivors={self.survivors}")

    def __str__(self) -> str:
        survivors = self.survivors
        named = {
            "kept": str(self.kept) if self.kept else "",
            "lost": _listed(survivors.lost),
            "torn": ",".join(f"{index}:{kept}" for index, kept in survivors.torn),
            "stale": _listed(survivors.stale),
        }
        pieces = [f"{name}={value}" for name, value in named.items() if value]
        return " ".join([str(self.operation), self.phase, self.kind, *pieces])

    @classmethod
    def parse(cls, text: str) -> CrashPoint:
        """Return the point that prints as ``text``; ``HarnessError`` names the malformed piece."""
        pieces = text.split()
        if len(pieces) < 3:
            raise HarnessError(
                f"crash point {text!r} needs an operation, a phase and a kind, "
                "as in '12 before kill'"
            )
        operation = _number(pieces[0], "operation number")
        phase = _member(Phase, pieces[1], "phase")
        kind = _member(CrashKind, pieces[2], "kind of crash")
        named = _named(pieces[3:])
        survivors = SurvivorSet(
            lost=_numbers(named.get("lost", "")),
            torn=tuple(_tear(pair) for pair in _split(named.get("torn", ""))),
            stale=_numbers(named.get("stale", "")),
        )
        return cls(operation, phase, kind, survivors, _number(named.get("kept", "0"), "kept"))


_Enum = TypeVar("_Enum", Phase, CrashKind)
_MOST_DIGITS: Final = 100
_PIECES: Final = ("kept", "lost", "torn", "stale")


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _split(text: str) -> list[str]:
    return text.split(",") if text else []


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(word, "unsynced operation") for word in _split(text))


def _tear(pair: str) -> tuple[int, int]:
    index, colon, kept = pair.partition(":")
    if not colon:
        raise HarnessError(f"torn write {pair!r} in a crash point is not 'operation:bytes'")
    return _number(index, "torn write"), _number(kept, "torn write")


def _named(pieces: Iterable[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name not in _PIECES or not value or name in named:
            raise HarnessError(
                f"piece {piece!r} of a crash point is not one of kept=, lost=, torn=, stale=, "
                "each with a value and at most once"
            )
        named[name] = value
    return named


def _number(word: str, role: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS):
        raise HarnessError(
            f"{role} {word!r} of a crash point is not a whole number with at most {_MOST_DIGITS} "
            "digits"
        )
    return int(word)


def _member(kind: type[_Enum], word: str, role: str) -> _Enum:
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(kind)
        raise HarnessError(f"{role} {word!r} of a crash point is none of {known}") from None
