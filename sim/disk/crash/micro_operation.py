"""Micro-operations, pieces for short: the parts in which an operation reaches the platter.

A piece is unsynced until a barrier covers it. In a power cut each piece survives or is lost
by itself, within the limits of the persistence model.
``operation`` is the number of the operation that it comes from; operations of a lifetime
before a kill have numbers of zero and below. ``number`` is the inode.
"""

from __future__ import annotations

import stat
from enum import Enum, auto
from typing import NamedTuple

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES, Inode
from sim.disk.cache.inode_table import InodeTable

Name = tuple[int, str]
"""A directory and an entry of it."""


class CreateInode(NamedTuple):
    """An inode appears, without a name."""

    operation: int
    number: int
    mode: int
    uid: int
    gid: int
    link_text: str
    now_ns: int

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    def apply(self, table: InodeTable) -> None:
        _, number, mode, uid, gid, link_text, now_ns = self
        table.add(Inode.new(number, mode, uid, gid, link_text, now_ns))

    def __str__(self) -> str:
        return f"create inode {self.number}"


class WriteBlock(NamedTuple):
    """Data, of at most one unit of the model.

    ``fresh``: its block is new, because it lies at or beyond the size that the file had before
    the call, or an unsynced write has allocated it. ``appended``: the data itself lies there.
    ``grows``: the size in bytes that becomes durable together with it, or 0.
    """

    operation: int
    number: int
    offset: int
    data: bytes
    fresh: bool
    appended: bool
    grows: int = 0

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.number)
        inode.write(self.offset, self.data)
        inode.grow(self.grows)

    def __str__(self) -> str:
        end = self.offset + len(self.data)
        return f"data of inode {self.number}, bytes {self.offset} to {end}"


class Growth(Enum):
    """The calls that give a file a size which counts only if the file is shorter."""

    WRITE = auto()
    """A write that ends there, or reaches the end of this block."""
    BLOCK = auto()
    """A write before or behind a gap: no call gave the file this size, the end of a block."""
    ALLOCATION = auto()
    """``posix_fallocate`` that extends the file."""
    ALLOCATION_WITHIN = auto()
    """``posix_fallocate`` within the file."""
    TRUNCATION = auto()
    """A truncation to the size that the file has."""


class GrowSize(NamedTuple):
    """A size in bytes that counts only if the file is shorter."""

    operation: int
    number: int
    size: int
    cause: Growth = Growth.WRITE

    def apply(self, table: InodeTable) -> None:
        table.own(self.number).grow(self.size)

    def __str__(self) -> str:
        return f"size of inode {self.number}, {self.size} bytes"


class SetSize(NamedTuple):
    """The size in bytes that a truncation sets.

    Bytes stored at or beyond ``cut`` are dropped with it; None: none are. ``tail`` are bytes that
    return at ``tail_at`` (``OldTail``).
    """

    operation: int
    number: int
    size: int
    cut: int | None = None
    tail_at: int = 0
    tail: bytes = b""

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.number)
        if self.tail:
            inode.write(self.tail_at, self.tail)
        if self.cut is not None:
            inode.cut(self.cut)
        inode.size = self.size

    def __str__(self) -> str:
        return f"size of inode {self.number}, {self.size} bytes"


class ZeroTail(NamedTuple):
    """Zeros behind a truncation, in the block that keeps the end of the file.

    They allocate no block.
    """

    operation: int
    number: int
    offset: int
    end: int

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.number)
        if self.offset // BLOCK_BYTES in inode.blocks:
            inode.write(self.offset, bytes(self.end - self.offset))

    def __str__(self) -> str:
        return f"zeros of inode {self.number}, bytes {self.offset} to {self.end}"


class FreeBlocks(NamedTuple):
    """Everything stored at or beyond ``start`` (bytes) is dropped; the size stays as it is."""

    operation: int
    number: int
    start: int

    def apply(self, table: InodeTable) -> None:
        table.own(self.number).cut(self.start)

    def __str__(self) -> str:
        return f"blocks of inode {self.number}, from byte {self.start} on"


class LinkName(NamedTuple):
    """A directory entry appears; ``replaced`` loses it by a rename, or is 0."""

    operation: int
    number: int
    directory: int
    name: str
    replaced: int = 0

    def apply(self, table: InodeTable) -> None:
        table.attach(table.own(self.directory), self.name, table.own(self.number))

    def __str__(self) -> str:
        return f"directory entry {self.name!r}"


class UnlinkName(NamedTuple):
    """A directory entry disappears, if it still means this inode.

    ``moved_to``: the directory to which the same rename has linked the file, or 0.
    ``returns_to``: the inode that gets the name back by it, if its creation survived; or 0.
    """

    operation: int
    number: int
    directory: int
    name: str
    moved_to: int = 0
    returns_to: int = 0

    def apply(self, table: InodeTable) -> None:
        holder = table.own(self.directory)
        if holder.entries.get(self.name) == self.number:
            table.detach(holder, self.name, table.own(self.number))
            if table.get(self.returns_to) is not None:
                table.attach(holder, self.name, table.own(self.returns_to))

    def __str__(self) -> str:
        return f"removal of directory entry {self.name!r}"


class ForgetName(NamedTuple):
    """The name that a file had on the platter disappears, after it moved more than once.

    It does so with the last of its renames, or with an unlink after them, also where the first
    rename is lost. ``moved_to`` is the directory of its new name, 0 for an unlink.
    """

    operation: int
    number: int
    directory: int
    name: str
    moved_to: int

    def apply(self, table: InodeTable) -> None:
        UnlinkName(self.operation, self.number, self.directory, self.name).apply(table)

    def __str__(self) -> str:
        return f"removal of the first directory entry {self.name!r}"


class MoveName(NamedTuple):
    """A directory entry moves, in one piece; ``replaced`` loses the new name by it, or is 0.

    ``returns_to``: the inode that gets the old name back by it, or 0.
    ``links_left``: the number of other names of ``replaced``.
    """

    operation: int
    number: int
    directory: int
    name: str
    to_directory: int
    to_name: str
    replaced: int
    returns_to: int = 0
    links_left: int = 0

    def apply(self, table: InodeTable) -> None:
        _, number, directory, name, to_directory, to_name, _, returns_to, _ = self
        inode, holder, to_holder = table.own(number), table.own(directory), table.own(to_directory)
        if returns_to and holder.entries.get(name) == number:
            UnlinkName(0, number, directory, name, returns_to=returns_to).apply(table)
        table.move(inode, holder, name, to_holder, to_name)

    def __str__(self) -> str:
        return f"rename of {self.name!r} to {self.to_name!r}"


class ChangeAttributes(NamedTuple):
    """Permissions, owner and times change together."""

    operation: int
    number: int
    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int

    def apply(self, table: InodeTable) -> None:
        _, number, mode, uid, gid, atime_ns, mtime_ns = self
        table.own(number).set_attributes(mode, uid, gid, atime_ns, mtime_ns)

    def __str__(self) -> str:
        return f"attributes of inode {self.number}"


# Each union is made once: to make it inside a condition would cost more than the condition.
Content = WriteBlock | ZeroTail
NotContent = (
    CreateInode
    | GrowSize
    | SetSize
    | FreeBlocks
    | LinkName
    | UnlinkName
    | ForgetName
    | MoveName
    | ChangeAttributes
)
MicroOperation = Content | NotContent
Size = GrowSize | SetSize
Arrival = LinkName | MoveName
"""A piece that gives an inode a name."""
Departure = UnlinkName | MoveName
"""A piece that takes a name from an inode."""
NameChange = LinkName | UnlinkName | MoveName


def given_name(micro: Arrival) -> Name:
    """Return the name that a piece gives an inode."""
    if isinstance(micro, MoveName):
        return micro.to_directory, micro.to_name
    return micro.directory, micro.name


def taken_name(micro: Departure | ForgetName) -> Name:
    """Return the name that a piece takes from an inode."""
    return micro.directory, micro.name


def names_of(micro: MicroOperation) -> tuple[Name, ...]:
    """Return the names that a piece changes: that which it takes, then that which it gives.

    ``ForgetName`` counts as none: no barrier covers another change of its name because of it.
    """
    match micro:
        case MoveName():
            return (micro.directory, micro.name), (micro.to_directory, micro.to_name)
        case LinkName() | UnlinkName():
            return ((micro.directory, micro.name),)
        case _:
            return ()


def directories_of(micro: MicroOperation) -> tuple[int, ...]:
    """Return the directories whose entries a piece changes."""
    match micro:
        case MoveName():
            return (micro.directory, micro.to_directory)
        case LinkName() | UnlinkName() | ForgetName():
            return (micro.directory,)
        case _:
            return ()


def stale_form(block: WriteBlock) -> WriteBlock:
    """Return the same piece, with the bytes that its place held before as its data."""
    end = block.offset + len(block.data)
    return block._replace(data=stale_bytes(block, block.offset, end))


def stale_bytes(block: WriteBlock, start: int, end: int) -> bytes:
    """Return the bytes that a part of its place held before it was allocated.

    They are different in each sector. They contain line ends, so a program that splits a log at
    line ends reads them as lines.
    """
    parts = []
    while start < end:
        sector = start // SECTOR_BYTES
        first = max(block.offset, sector * SECTOR_BYTES)
        limit = min(end, (sector + 1) * SECTOR_BYTES)
        pattern = b"stale %d.%d\n" % (block.number, sector)
        text = pattern * ((limit - first) // len(pattern) + 1)
        parts.append(text[start - first : limit - first])
        start = limit
    return b"".join(parts)
