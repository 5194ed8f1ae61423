"""The events of a run, line by line, to find the first difference between two runs.

Keeping a trace costs more than the run itself, so it is off unless requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xxhash import xxh3_128

from sim.disk.cache.operation import Operation


class Divergence(NamedTuple):
    """The first line in which two traces differ, from 1; a trace that has ended has ``""``."""

    line: int
    first: str
    second: str


class Trace:
    """The lines of one run, in order."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Append one line."""
        self.lines.append(line)

    def add_operations(self, journal: Sequence[Operation]) -> None:
        """Append a line for each operation of a disk in one lifetime."""
        for number, operation in enumerate(journal, 1):
            values = " ".join(map(repr, operation))
            self.lines.append(f"  {number} {type(operation).__name__} {values}")

    def digest(self) -> str:
        """Return 32 hex digits that differ for different traces."""
        text = "\n".join(self.lines)
        return xxh3_128(text.encode("utf-8", "surrogatepass")).hexdigest()


def first_divergence(first: Sequence[str], second: Sequence[str]) -> Divergence | None:
    """Return the first difference of two traces, or None if they are equal."""
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return Divergence(number, one, other)
    if len(first) == len(second):
        return None
    number = min(len(first), len(second)) + 1
    return Divergence(
        number, *(lines[number - 1] if len(lines) >= number else "" for lines in (first, second))
    )
