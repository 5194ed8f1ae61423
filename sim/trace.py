"""The events of a run, line by line, to compare two runs.

Keeping a trace costs more than the run itself, so it is off unless requested.
"""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_128

from sim.disk.cache.operation import Operation


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
