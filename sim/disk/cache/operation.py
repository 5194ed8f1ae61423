"""What a program asks of the disk, one value per mutating call: the disk's journal.

The journal does not know any persistence model. It is written once, while the program
runs, and every model reads it afterwards (``unsynced.py``). Operation ``n`` of a lifetime
is entry ``n - 1`` of the journal, so a number names the same call in every report.

``path`` is the path through which the program made the call, for people only; nothing
is decided by it. Inodes and directories are named by number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from sim.disk.cache.inode import Inode


class Create(NamedTuple):
    """An inode came to be; ``name`` is empty for ``O_TMPFILE``. ``inode`` is as it was born."""

    path: str
    inode: Inode
    directory: int
    name: str


class Write(NamedTuple):
    """Bytes went to the page cache at ``offset`` (bytes); ``size`` is the file's size before."""

    path: str
    inode: int
    offset: int
    data: bytes
    size: int


class Resize(NamedTuple):
    """``ftruncate`` or a growing ``fallocate``: from ``before`` to ``size`` bytes."""

    path: str
    inode: int
    size: int
    before: int


class Link(NamedTuple):
    """One more name for an inode that exists."""

    path: str
    inode: int
    directory: int
    name: str


class Unlink(NamedTuple):
    """A name disappeared (``unlink`` or ``rmdir``)."""

    path: str
    inode: int
    directory: int
    name: str


class Rename(NamedTuple):
    """A name moved; ``replaced`` is the inode that lost its name to it, or 0."""

    path: str
    inode: int
    directory: int
    name: str
    to_path: str
    to_directory: int
    to_name: str
    replaced: int


class SetAttributes(NamedTuple):
    """``chmod``, ``chown`` or ``utime``: the attributes after the call, whole."""

    path: str
    inode: int
    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int


class Sync(NamedTuple):
    """A barrier on one inode; ``data_only`` for ``fdatasync``. ``inode`` 0 is ``sync(2)``."""

    path: str
    inode: int
    data_only: bool


class SyncFailure(StrEnum):
    """What a failing fsync does to the page cache (CuttleFS, ATC'20, table 2)."""

    EXT4 = "ext4"
    XFS = "xfs"
    EXT4_JOURNAL = "ext4-journal"
    BTRFS = "btrfs"
    LYING = "lying"


class FailedSync(NamedTuple):
    """A barrier that made nothing durable, by one of the policies of ``SyncFailure``."""

    path: str
    inode: int
    data_only: bool
    policy: SyncFailure


Operation = Create | Write | Resize | Link | Unlink | Rename | SetAttributes | Sync | FailedSync


class Interposer(Protocol):
    """Stands between the program and the disk: the crash counter, the fault injectors.

    One disk has at most one; those that compose call the next themselves.
    """

    def before(self, operation: Operation, number: int) -> Operation:
        """Look at mutating operation ``number`` (from 1) before it happens.

        Return it, or what shall happen instead (a shorter ``Write``, a ``FailedSync``).
        Raise ``OSError`` to refuse it with nothing changed, or ``SimulatedCrash``.
        """
        ...

    def after(self, operation: Operation, number: int) -> None:
        """Look at it after it happened; may raise ``SimulatedCrash``, nothing else."""
        ...

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Return what a read of ``data`` at ``offset`` gives; may be shorter or damaged.

        Raise ``OSError`` to fail the read.
        """
        ...


class DescriptorInterposer(Protocol):
    """Stands beside the ``Interposer``, where descriptors come and go and nothing changes."""

    def opening(self, path: str, descriptors: int) -> None:
        """Look at an open while so many descriptors are open; raise ``OSError`` to refuse it."""
        ...

    def closing(self, path: str, inode: int) -> None:
        """Look at a close whose descriptor is gone; raise ``OSError`` to report a late error."""
        ...
