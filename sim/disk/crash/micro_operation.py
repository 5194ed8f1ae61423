"""The pieces that an operation leaves on the disk until a barrier covers them.

Each becomes durable or is lost by itself, within what the persistence model allows.
``operation`` is the number of the operation it came from; numbers of an earlier
lifetime (the process was killed, the machine was not) are zero or negative.
"""

from __future__ import annotations

from typing import NamedTuple

from sim.disk.cache.inode import SECTOR_BYTES, Inode
from sim.disk.cache.inode_table import InodeTable


class CreateInode(NamedTuple):
    """An inode came to be, as it was born; it has no name yet."""

    operation: int
    inode: Inode

    @property
    def number(self) -> int:
        return self.inode.number

    def apply(self, table: InodeTable) -> None:
        table.add(self.inode.copy())

    def __str__(self) -> str:
        return f"create inode {self.inode.number}"


class WriteBlock(NamedTuple):
    """At most one unit of data. ``fresh``: its block was not yet allocated on the platter.
    ``appended``: it lies at or beyond the size that the file had before the call.
    ``grows``: the size that becomes durable together with it, or 0.
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
        inode.size = max(inode.size, self.grows)

    def __str__(self) -> str:
        end = self.offset + len(self.data)
        return f"data of inode {self.number}, bytes {self.offset} to {end}"


class SetSize(NamedTuple):
    """``append``: the size grew because of a write; otherwise it was set by itself."""

    operation: int
    number: int
    size: int
    append: bool

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.number)
        if self.append:
            inode.size = max(inode.size, self.size)
        else:
            inode.resize(self.size)

    def __str__(self) -> str:
        return f"size of inode {self.number}, {self.size} bytes"


class LinkName(NamedTuple):
    """A directory entry appears."""

    operation: int
    number: int
    directory: int
    name: str

    def apply(self, table: InodeTable) -> None:
        table.attach(self.directory, self.name, self.number)

    def __str__(self) -> str:
        return f"directory entry {self.name!r}"


class UnlinkName(NamedTuple):
    """A directory entry disappears, if it still means this inode."""

    operation: int
    number: int
    directory: int
    name: str

    def apply(self, table: InodeTable) -> None:
        if table.own(self.directory).entries.get(self.name) == self.number:
            table.detach(self.directory, self.name)

    def __str__(self) -> str:
        return f"removal of directory entry {self.name!r}"


class MoveName(NamedTuple):
    """A directory entry moves, in one piece; ``replaced`` lost its name to it, or is 0."""

    operation: int
    number: int
    directory: int
    name: str
    to_directory: int
    to_name: str
    replaced: int

    def apply(self, table: InodeTable) -> None:
        table.move(self.number, self.directory, self.name, self.to_directory, self.to_name)

    def __str__(self) -> str:
        return f"rename of {self.name!r} to {self.to_name!r}"


class ChangeAttributes(NamedTuple):
    """Permissions, owner and times, all together."""

    operation: int
    number: int
    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.number)
        inode.mode, inode.uid, inode.gid = self.mode, self.uid, self.gid
        inode.atime_ns, inode.mtime_ns = self.atime_ns, self.mtime_ns

    def __str__(self) -> str:
        return f"attributes of inode {self.number}"


MicroOperation = (
    CreateInode | WriteBlock | SetSize | LinkName | UnlinkName | MoveName | ChangeAttributes
)


def names_of(micro: MicroOperation) -> tuple[tuple[int, str], ...]:
    """Return the directory entries that it changes, each as directory and name."""
    match micro:
        case MoveName():
            return (micro.directory, micro.name), (micro.to_directory, micro.to_name)
        case LinkName() | UnlinkName():
            return ((micro.directory, micro.name),)
        case _:
            return ()


def stale_bytes(block: WriteBlock) -> bytes:
    """Return what a sector held before it was allocated: readable, and different per sector.

    It has line ends in it, so that whoever splits a log at them meets the garbage.
    """
    sector = block.offset // SECTOR_BYTES
    pattern = b"stale %d.%d\n" % (block.number, sector)
    repeated = pattern * (len(block.data) // len(pattern) + 1)
    return repeated[: len(block.data)]
