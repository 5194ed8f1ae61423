"""Operations: one plain value for each mutating call that a disk carried out.

An operation names inodes and directories by number, and carries everything that its effect
on the page cache depends on, the time stamp included. A list of operations and the image
that it started from are therefore a complete record (``sim/disk/crash/journal.py``), which
can be read under any persistence model, on another machine.

Operation ``n`` of a journal is at index ``n - 1``. ``path`` is the path of the call, for
reports only. Sizes and offsets are in bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sim.disk.cache.inode import Inode
from sim.disk.cache.inode_table import InodeTable


class Create(NamedTuple):
    """Makes inode ``inode``; ``name`` is empty for ``O_TMPFILE``, ``mode`` has the type bits.

    ``link_text`` is the text of a symbolic link.
    """

    path: str
    inode: int
    mode: int
    uid: int
    gid: int
    link_text: str
    directory: int
    name: str
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        _, number, mode, uid, gid, link_text, directory, name, now_ns = self
        inode = table.add(Inode.new(number, mode, uid, gid, link_text, now_ns))
        if name:
            holder = table.own(directory)
            table.attach(holder, name, inode)
            holder.mtime_ns = holder.ctime_ns = now_ns
        else:
            table.never_named |= {number}


class Write(NamedTuple):
    """Puts ``data`` at ``offset`` of a file that had ``size_before`` bytes.

    ``direct`` is whether the file was open with ``O_DIRECT``.
    """

    path: str
    inode: int
    offset: int
    data: bytes
    size_before: int
    now_ns: int
    direct: bool = False

    def split(self, middle: int) -> tuple[Write, Write]:
        """Return the writes of the bytes before offset ``middle``, and from there on."""
        first = middle - self.offset
        before, size = self._replace(data=self.data[:first]), max(self.size_before, middle)
        return before, self._replace(offset=middle, data=self.data[first:], size_before=size)

    def apply(self, table: InodeTable) -> None:
        _, number, offset, data, _, now_ns, _ = self
        inode = table.own(number)
        inode.write(offset, data)
        inode.grow(offset + len(data))
        inode.mtime_ns = inode.ctime_ns = now_ns


class Resize(NamedTuple):
    """Sets the size of a file that had ``size_before`` bytes: ``ftruncate``."""

    path: str
    inode: int
    size: int
    size_before: int
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.inode)
        inode.resize(self.size)
        inode.mtime_ns = inode.ctime_ns = self.now_ns


class Allocate(NamedTuple):
    """Extends a file of ``size_before`` bytes to ``end``, if it is shorter: ``posix_fallocate``."""

    path: str
    inode: int
    end: int
    size_before: int
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.inode)
        inode.grow(self.end)
        inode.mtime_ns = inode.ctime_ns = self.now_ns


class Link(NamedTuple):
    """Gives an inode the further name ``name`` in ``directory``."""

    path: str
    inode: int
    directory: int
    name: str
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        inode, holder = table.own(self.inode), table.own(self.directory)
        table.attach(holder, self.name, inode)
        table.never_named -= {self.inode}
        inode.ctime_ns = holder.mtime_ns = holder.ctime_ns = self.now_ns


class Unlink(NamedTuple):
    """Removes the name of an inode from ``directory`` (``unlink`` or ``rmdir``)."""

    path: str
    inode: int
    directory: int
    name: str
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        inode, holder = table.own(self.inode), table.own(self.directory)
        table.detach(holder, self.name, inode)
        inode.ctime_ns = holder.mtime_ns = holder.ctime_ns = self.now_ns


class Rename(NamedTuple):
    """Moves a name; ``replaced`` is the inode that loses the new name by it, or 0.

    ``links_left`` is the number of names that ``replaced`` keeps, 0 for a directory.
    """

    path: str
    inode: int
    directory: int
    name: str
    to_path: str
    to_directory: int
    to_name: str
    replaced: int
    links_left: int
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        _, number, directory, name, _, to_directory, to_name, _, _, now_ns = self
        inode, holder, to_holder = table.own(number), table.own(directory), table.own(to_directory)
        replaced = table.move(inode, holder, name, to_holder, to_name)
        inode.ctime_ns = holder.ctime_ns = to_holder.ctime_ns = now_ns
        holder.mtime_ns = to_holder.mtime_ns = now_ns
        if replaced is not None:
            replaced.ctime_ns = now_ns


class SetAttributes(NamedTuple):
    """Sets permission bits, owner and times, all of them as they are after the call."""

    path: str
    inode: int
    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int
    now_ns: int

    def apply(self, table: InodeTable) -> None:
        inode = table.own(self.inode)
        inode.set_attributes(self.mode, self.uid, self.gid, self.atime_ns, self.mtime_ns)
        inode.ctime_ns = self.now_ns


class Sync(NamedTuple):
    """A barrier on one inode, ``data_only`` for ``fdatasync``; inode 0 means ``sync(2)``.

    It covers the data in the pages from ``start`` up to ``end``, in bytes, and all data if ``end``
    is 0. The barrier of a write under ``O_SYNC`` or ``O_DSYNC`` has the bytes of that write
    (``generic_write_sync`` of Linux), and ``msync(2)`` those of its pages.
    """

    path: str
    inode: int
    data_only: bool
    start: int = 0
    end: int = 0

    def apply(self, table: InodeTable) -> None:
        """Change nothing: the page cache has everything already."""

    def failed(self, policy: SyncFailure) -> FailedSync:
        """Return this barrier as one that fails; btrfs always writes the whole file."""
        start, end = (0, 0) if policy is SyncFailure.BTRFS else (self.start, self.end)
        return FailedSync(self.path, self.inode, self.data_only, policy, start, end)


class SyncFailure(StrEnum):
    """The effect of a failing fsync (docs/disk.md, Failed barriers).

    Sources: Linux 6.18; CuttleFS, ATC'20, table 2.
    """

    EXT4 = "ext4"
    """EIO. The data counts as written, its sizes do not; new blocks stay unwritten."""
    XFS = "xfs"
    """EIO. Data and sizes count as written: another barrier succeeds and does not write them."""
    EXT4_JOURNAL = "ext4-journal"
    """As ``XFS``, but this barrier succeeds, and the next one on the file fails."""
    BTRFS = "btrfs"
    """EIO. The data of the whole file counts as written, its sizes do not."""
    LYING = "lying"
    """No error. Nothing is durable, and the pages are still to be written."""

    @property
    def keeps_sizes(self) -> bool:
        """Whether the sizes that writes gave the file are still to be written."""
        return self in {SyncFailure.EXT4, SyncFailure.BTRFS, SyncFailure.LYING}


class FailedSync(NamedTuple):
    """A barrier that made nothing durable, with the bytes of ``Sync``.

    Data in other pages is still to be written.
    """

    path: str
    inode: int
    data_only: bool
    policy: SyncFailure
    start: int = 0
    end: int = 0

    def apply(self, table: InodeTable) -> None:
        """Change nothing."""


class DropPages(NamedTuple):
    """Drops pages of a file from the page cache: ``posix_fadvise``, ``POSIX_FADV_DONTNEED``.

    They are those of the bytes from ``start`` up to ``end``, up to the end of the file if ``end``
    is 0. A disk carries it out only if failed barriers have lost data of the file; ``Disk``
    changes the page cache, because the content that is left depends on the platter.
    """

    path: str
    inode: int
    start: int = 0
    end: int = 0

    def apply(self, table: InodeTable) -> None:
        """Change nothing."""


Operation = (
    Create
    | Write
    | Resize
    | Allocate
    | Link
    | Unlink
    | Rename
    | SetAttributes
    | Sync
    | FailedSync
    | DropPages
)
