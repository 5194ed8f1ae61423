"""What happened in a run, line by line, for finding the first place where two runs part.

A trace costs more than the run itself, so it is kept only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xxhash import xxh3_128

from sim.disk.cache.operation import Operation


class Divergence(NamedTuple):
    """The first line in which two traces differ, from 1; an empty line is the end of one."""

    line: int
    first: str
    second: str


class Trace:
    """The lines of one run, in order."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Add one line."""
        self.lines.append(line)

    def add_operations(self, journal: Sequence[Operation]) -> None:
        """Add what a disk did in one lifetime."""
        for number, operation in enumerate(journal, 1):
            self.lines.append(f"  {number} {type(operation).__name__} {_values(operation)}")

    def digest(self) -> str:
        """Return 32 hex digits that are equal exactly for equal traces."""
        text = "\n".join(self.lines)
        return xxh3_128(text.encode("utf-8", "surrogatepass")).hexdigest()


def _values(operation: Operation) -> str:
    return " ".join(
        repr(value) if isinstance(value, int | str | bytes) else f"inode {value.number}"
        for value in operation
    )


def first_divergence(first: Sequence[str], second: Sequence[str]) -> Divergence | None:
    """Return where two traces part, or None if they are equal."""
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return Divergence(number, one, other)
    if len(first) == len(second):
        return None
    number = min(len(first), len(second)) + 1
    return Divergence(
        number, *(lines[number - 1] if len(lines) >= number else "" for lines in (first, second))
    )
