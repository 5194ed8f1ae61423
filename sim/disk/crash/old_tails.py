"""The old tails that one barrier leaves (docs/disk.md, "Barriers"): bytes behind the end of a file.

A barrier on a file may make a truncation durable, and leave the bytes that it cut off in the last
block that is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.inode_table import InodeTable
from sim.disk.crash.micro_operation import MicroOperation, SetSize, WriteBlock, ZeroTail
from sim.disk.crash.notes import OldTail


class OldTails:
    """Collects the tails of the pieces ``applied``, before each is applied to ``table``."""

    def __init__(self, applied: Iterable[MicroOperation], table: InodeTable) -> None:
        self._table = table
        self._truncations = {each.operation: each for each in applied if isinstance(each, SetSize)}
        self._found: dict[int, OldTail] = {}

    def add(self, micro: MicroOperation) -> None:
        """Note the bytes that a piece is to drop; a write to the file leaves none."""
        truncation = self._truncations.get(micro.operation)
        if truncation and truncation.tail:
            return  # It brings back a tail, so it is no truncation to a smaller size.
        match micro:
            case WriteBlock():
                self._found.pop(micro.number, None)
            case ZeroTail(offset=start):
                # A failed barrier may have lost the first zeros.
                self._note(micro, truncation.size if truncation else start)
            case SetSize(size=start):
                self._note(micro, start)
            case _:
                pass

    def _note(self, micro: ZeroTail | SetSize, start: int) -> None:
        """Note the bytes of the file from ``start`` to the end of its block."""
        operation, number = micro.operation, micro.number
        inode, known = self._table.get(number), self._found.get(number)
        is_noted = known is not None and known.operation == operation
        if inode is not None and start < inode.size and not is_noted:
            data = inode.stored(start, -start % BLOCK_BYTES).rstrip(b"\0")
            self._found[number] = OldTail(operation, number, start, data)

    def notes(self) -> Iterator[OldTail]:
        """Yield the tails that have bytes."""
        return (tail for tail in self._found.values() if tail.data)
