"""Notes: effects of earlier barriers that decide the pieces of later operations.

A note is no piece: a power cut neither keeps nor loses it. Only models whose barriers cover
no more than ``Coverage.NEEDS`` have notes (docs/disk.md, classes B9, B10 and T6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import Sync, SyncFailure
from sim.disk.crash.log_order import LogOrder
from sim.disk.crash.micro_operation import Content, MicroOperation, SetSize, UnlinkName


class LoggedName(NamedTuple):
    """A durable name that only a barrier on its file has covered, none on its directory.

    A rename over this name becomes durable in parts.
    """

    operation: int
    number: int
    directory: int
    name: str

    def __str__(self) -> str:
        return f"directory entry {self.name!r} in its directory"


class FormerName(NamedTuple):
    """A name that another file has taken durably, while its loss by this inode is unsynced.

    This inode gets the name back when the other file loses it.
    """

    operation: int
    number: int
    directory: int
    name: str

    def __str__(self) -> str:
        return f"former directory entry {self.name!r}"


class OldTail(NamedTuple):
    """Bytes behind the end of a file, which a truncation left in its last block.

    They return if another truncation extends the file.
    """

    operation: int
    number: int
    offset: int
    data: bytes

    def __str__(self) -> str:
        return f"bytes behind the end of inode {self.number}"


class Surplus(NamedTuple):
    """Bytes of a file beyond its size on the platter, which a power cut drops (``beyond_end.py``).

    It is carried over to the next lifetime, under every model, and is in no ``Notes``.
    """

    number: int

    def __str__(self) -> str:
        return f"bytes beyond the end of inode {self.number}"


class LostData(NamedTuple):
    """Data of one block that a failed barrier has lost: it is in the page cache only.

    ``is_new`` is whether nothing of its block was durable then, which does not matter to btrfs. It
    is carried over to the next lifetime, as an unwritten block is, and is in no ``Notes``.
    """

    number: int
    offset: int
    data: bytes
    policy: SyncFailure
    is_new: bool

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def returns_by_truncation(self) -> bool:
        """Whether a truncation that ends in the block writes it."""
        return not self.is_new and self.policy is not SyncFailure.BTRFS

    @property
    def returns_by_growth(self) -> bool:
        """Whether it is written if the file grows behind the block, which it ended in."""
        return not self.is_new

    def __str__(self) -> str:
        return f"lost data of inode {self.number}, bytes {self.offset} to {self.end}"


class UnwrittenBlock(NamedTuple):
    """A block of a file that reads as zeros after a power cut, whatever is written to it.

    ``is_changed`` is whether it was changed, and no barrier has come since.
    """

    number: int
    block: int
    is_changed: bool = False

    def __str__(self) -> str:
        return f"unwritten block {self.block} of inode {self.number}"


class LogTree(NamedTuple):
    """There is a log tree (``MetadataInOrder.UNTIL_FSYNC``), which a kill does not end."""

    def __str__(self) -> str:
        return "log tree"


Note = LoggedName | FormerName | OldTail
Carried = MicroOperation | Note | Surplus | LostData | UnwrittenBlock | LogTree | LogOrder
"""What a kill leaves above the platter for the next lifetime."""


class Notes:
    """The notes of one platter, oldest first."""

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[Note]:
        return iter(self._notes)

    def add(self, note: Note) -> None:
        self._notes.append(note)

    def is_logged(self, number: int, directory: int, name: str) -> bool:
        """Return whether only barriers on this file have covered its name."""
        return any(
            isinstance(note, LoggedName) and note[1:] == (number, directory, name)
            for note in self._notes
        )

    def former_holder(self, losers: set[int], directory: int, name: str) -> int:
        """Return the first inode but ``losers`` whose loss of this name is unsynced, or 0."""
        for note in self._notes:
            if (
                isinstance(note, FormerName)
                and (note.directory, note.name) == (directory, name)
                and note.number not in losers
            ):
                return note.number
        return 0

    def old_tail(self, number: int, size: int) -> bytes:
        """Return the bytes that a truncation to ``size`` left behind the end of this inode."""
        for note in self._notes:
            if isinstance(note, OldTail) and (note.number, note.offset) == (number, size):
                return note.data
        return b""

    def drop_ended(
        self,
        sync: Sync,
        applied: Sequence[MicroOperation],
        left: Sequence[MicroOperation],
        table: InodeTable,
    ) -> None:
        """Drop the notes that a barrier ends.

        ``applied`` are the pieces that it has put on the platter, ``left`` those that it leaves.
        """
        if not sync.inode:
            self._notes.clear()
            return
        rewritten = {each.number for each in applied if _is_rewriting(each)}
        unsynced_losses, durable_losses = _losses(left), _losses(applied)
        self._notes = [
            note
            for note in self._notes
            if (isinstance(note, FormerName) and note[1:] in unsynced_losses)
            or not (note[1:] in durable_losses or _ends(note, sync, rewritten, table))
        ]


def _losses(micros: Sequence[MicroOperation]) -> set[tuple[int, int, str]]:
    """Return the inodes that lose a name by removals, with directory and name."""
    return {
        (each.number, each.directory, each.name) for each in micros if isinstance(each, UnlinkName)
    }


def _ends(note: Note, sync: Sync, rewritten: set[int], table: InodeTable) -> bool:
    if isinstance(note, OldTail):
        return note.number in rewritten
    if note.directory == sync.inode:
        return True
    holder = table.get(note.directory)
    has_name = holder is not None and holder.entries.get(note.name) == note.number
    return has_name if isinstance(note, FormerName) else not has_name


def _is_rewriting(micro: MicroOperation) -> bool:
    """Return whether this is a write to a file, or a truncation of it."""
    return isinstance(micro, SetSize | Content)
