"""The pieces of the naive enumeration, and the platter that they change.

A piece is a part of an operation that a power cut keeps or loses as a whole. Sizes and
offsets are in bytes, ``call`` is the number of the operation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto

BLOCK, SECTOR = 4096, 512

OldTails = dict[tuple[int, int], bytes]
"""Bytes behind the end of a file, by inode and size."""

Entry = tuple[int, str]
"""A name: the number of its directory, and the name in it."""


@dataclass(frozen=True)
class Creation:
    """An inode without content and without a name."""

    call: int
    inode: int
    mode: int


@dataclass(frozen=True)
class Data:
    """Bytes at an offset.

    ``new_block``: the block did not exist before, or only unsynced data is in it.
    ``appended``: all of it is behind the size that the file had before the call.
    ``grows_to``: the size that comes with the data, 0 where sizes are pieces of their own.
    """

    call: int
    inode: int
    offset: int
    data: bytes
    new_block: bool
    appended: bool
    grows_to: int = 0

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True)
class Zeros:
    """Zeros behind the new end of a file, in the block that keeps the end."""

    call: int
    inode: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


class Sized(Enum):
    """The calls that give a file a size."""

    WRITE = auto()
    BLOCK = auto()
    """A write before or behind a gap: the end of a block that the kernel writes as a whole."""
    ALLOCATE = auto()
    """``posix_fallocate`` that extends the file."""
    WITHIN = auto()
    """``posix_fallocate`` within the file."""
    SAME = auto()
    """A truncation to the size that the file has."""
    TRUNCATE = auto()


@dataclass(frozen=True)
class Size:
    """A size. That of a truncation is set, any other counts only if the file is shorter.

    ``freed_from`` is the first byte of the blocks that a truncation freed, -1 if it made the
    file longer; ``drops_from`` the first byte that this piece drops, -1 if it drops none.
    ``needs_zeros``: the zeros of the same call must have survived. ``old_tail`` are bytes that
    it brings back from ``tail_at`` on.
    """

    call: int
    inode: int
    size: int
    sized: Sized
    freed_from: int = -1
    drops_from: int = -1
    needs_zeros: bool = False
    tail_at: int = 0
    old_tail: bytes = b""

    @property
    def is_set(self) -> bool:
        return self.sized is Sized.TRUNCATE


@dataclass(frozen=True)
class Freeing:
    """The end of all content from an offset on, which a truncation leaves for later."""

    call: int
    inode: int
    drops_from: int


@dataclass(frozen=True)
class Attributes:
    """Permission bits."""

    call: int
    inode: int
    mode: int


class Change(Enum):
    """The changes of names."""

    CREATE = auto()
    """The name of the call that created the inode."""
    LINK = auto()
    UNLINK = auto()
    RENAME = auto()
    """A whole rename."""
    NEW_NAME = auto()
    """The new name of a rename in parts."""
    OLD_NAME = auto()
    """The removal of the old name of a rename in parts."""
    DURABLE_NAME = auto()
    """The removal of the name that a file had durably before several renames."""
    LOSS = auto()
    """The removal of the new name of a rename from the file that had it before."""


@dataclass(frozen=True)
class Name:
    """A change of the names of ``inode``.

    ``gives`` is a name that it has from now on, ``takes`` a name that it has no longer.
    ``replaced`` is the inode that loses ``gives`` by it, or 0. ``into`` is the new directory
    of a rename for the pieces that take the old name away, or 0; ``moved_from`` the old name.
    ``returns_to`` is the inode that gets ``takes`` back, if it was created, or 0.
    """

    call: int
    inode: int
    change: Change
    gives: Entry | None = None
    takes: Entry | None = None
    replaced: int = 0
    into: int = 0
    moved_from: Entry | None = None
    returns_to: int = 0
    is_directory: bool = False

    @property
    def entries(self) -> set[Entry]:
        return {entry for entry in (self.gives, self.takes) if entry is not None}

    @property
    def directories(self) -> set[int]:
        return {directory for directory, _ in self.entries}


Piece = Creation | Data | Zeros | Size | Freeing | Attributes | Name


@dataclass
class Node:
    """One inode on the platter.

    ``content`` may be longer than ``size``; the rest is not visible until the file grows.
    ``blocks`` are the numbers of those that data was written to.
    """

    mode: int
    size: int = 0
    content: bytes = b""
    entries: dict[str, int] = field(default_factory=dict)
    blocks: frozenset[int] = frozenset()

    def put(self, offset: int, data: bytes) -> None:
        content = self.content.ljust(offset, b"\0")
        self.content = content[:offset] + data + content[offset + len(data) :]

    def drop_from(self, offset: int) -> None:
        self.content = self.content[:offset]
        self.blocks = frozenset(block for block in self.blocks if block * BLOCK < offset)

    def has_data(self, block: int) -> bool:
        return block in self.blocks


Platter = dict[int, Node]


def parts(start: int, end: int, unit: int) -> list[tuple[int, int]]:
    """Cut a range at the multiples of ``unit``."""
    found = []
    while start < end:
        stop = min(end, (start // unit + 1) * unit)
        found.append((start, stop))
        start = stop
    return found


def copied(platter: Platter) -> Platter:
    """Return an independent copy."""
    return {number: replace(node, entries=dict(node.entries)) for number, node in platter.items()}


def apply(piece: Piece, platter: Platter) -> None:
    """Carry out a piece that survived."""
    if isinstance(piece, Name):
        _apply_name(piece, platter)
        return
    if isinstance(piece, Creation):
        platter[piece.inode] = Node(piece.mode)
        return
    node = platter[piece.inode]
    match piece:
        case Data():
            node.put(piece.offset, piece.data)
            node.blocks |= set(range(piece.offset // BLOCK, (piece.end - 1) // BLOCK + 1))
            node.size = max(node.size, piece.grows_to)
        case Zeros():
            node.put(piece.offset, bytes(piece.length))
        case Size():
            node.size = piece.size if piece.is_set else max(node.size, piece.size)
            if piece.drops_from >= 0:
                node.drop_from(piece.drops_from)
            if piece.old_tail:
                node.put(piece.tail_at, piece.old_tail)
        case Freeing():
            node.drop_from(piece.drops_from)
        case Attributes():
            node.mode = piece.mode


def _apply_name(piece: Name, platter: Platter) -> None:
    if piece.takes is not None:
        directory, name = piece.takes
        if has_name(platter, piece.takes, piece.inode):
            del platter[directory].entries[name]
            if piece.returns_to in platter:
                platter[directory].entries[name] = piece.returns_to
    if piece.gives is not None:
        directory, name = piece.gives
        platter[directory].entries[name] = piece.inode


def has_name(platter: Platter, entry: Entry, inode: int) -> bool:
    """Return whether an inode has a name."""
    directory, name = entry
    return directory in platter and platter[directory].entries.get(name) == inode
