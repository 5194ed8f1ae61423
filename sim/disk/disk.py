"""The running disk: a page cache over a platter, used by one or more processes.

A disk works on inodes; ``calls/`` translates paths, descriptors and errno. Each mutating
method is one operation, which takes one path: it is built as a plain value, passes the
interposer, enters the journal and changes the page cache. The platter is not touched. When
a power cut is asked for, ``crash/`` reads the journal under the persistence model.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Final, NoReturn

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.interposer import DescriptorInterposer, Interposer
from sim.disk.cache.locks import LockTable
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    SyncFailure,
    Unlink,
    Write,
)
from sim.disk.cache.refusal import refusal
from sim.disk.crash.image import CREATION_NS, Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.os_error import os_error
from sim.errors import HarnessError, PowerOff

TICK_NS: Final = 1_000
"""The time that passes between two readings of the clock of a disk without a world."""

DEAD: Final = "the process that made this call is dead"

# The constructor of a named tuple is a Python function, and takes three times as long.
_new: Final = tuple.__new__


class Disk:
    """A mounted file system, from a boot to the crash that ends it.

    ``image`` is the disk at boot and is never changed. ``model`` is the persistence model of
    power cuts. ``now_ns`` returns the time of day in nanoseconds; by default it advances by
    one microsecond at each call. ``cache`` is the page cache, by default that of the image.

    ``interposer`` and ``descriptor_interposer`` may be set at any time; None observes and
    changes nothing. ``sync_errors`` counts for each inode the failures that a
    barrier has reported.

    An operation checks none of its arguments: ``calls/`` and ``repeat`` do. It raises
    ``PowerOff`` after the end of the lifetime, and ``OSError`` and ``SimulatedCrash`` where the
    interposer does.
    """

    def __init__(
        self,
        image: Image | None = None,
        model: PersistenceModel = POSIX,
        now_ns: Callable[[], int] | None = None,
        cache: InodeTable | None = None,
    ) -> None:
        self.image = image if image is not None else Image.empty()
        self.model = model
        self.now_ns = now_ns or count(CREATION_NS, TICK_NS).__next__
        self.cache = InodeTable(self.image.cached) if cache is None else cache
        self.journal = Journal(self.image)
        self._record: Callable[[Operation], None] = self.journal.operations.append
        self.next_inode = self.image.next_inode
        self.interposer: Interposer | None = None
        self.descriptor_interposer: DescriptorInterposer | None = None
        self.off = False
        self.locks = LockTable()
        self.sync_errors: dict[int, int] = {}
        self._delayed_errors: set[int] = set()
        # The files of which failed barriers may have lost data.
        self._with_lost_data = set(self.image.with_lost_data)
        self._unsynced: Unsynced | None = None
        self._read = 0  # operations of the journal that ``_unsynced`` has taken into account

    @property
    def operations(self) -> int:
        """The number of operations carried out since the boot."""
        return len(self.journal.operations)

    @property
    def root(self) -> Inode:
        """The root directory, in the page cache."""
        return self.cache.own(ROOT)

    def inode(self, number: int) -> Inode:
        """Return an inode of the page cache, for changing; ``KeyError`` if there is none."""
        return self.cache.own(number)

    def power_off(self) -> None:
        """End this lifetime: from now on every call raises ``PowerOff`` and changes nothing."""
        self.off = True

    # -- operations ------------------------------------------------------------------

    def create(
        self,
        directory: Inode,
        name: str,
        mode: int,
        path: str,
        link_text: str = "",
        owner: tuple[int, int] = (0, 0),
    ) -> Inode:
        """Make an inode under ``name``, or without a name if that is empty.

        ``mode`` includes the type bits; ``owner`` is uid and gid. A creation that the
        interposer refuses uses up an inode number.
        """
        number, (uid, gid) = self.next_inode, owner
        self.next_inode = number + 1
        self._perform(
            _new(Create, (
                path, number, mode, uid, gid, link_text, directory.number, name, self.now_ns(),
            ))
        )  # fmt: skip
        return self.cache.own(number)

    def write(self, inode: Inode, offset: int, data: bytes, path: str, direct: bool = False) -> int:
        """Write ``data`` at ``offset`` (bytes); return how many bytes were written."""
        write = _new(Write, (path, inode.number, offset, data, inode.size, self.now_ns(), direct))
        performed = self._perform(write)
        assert isinstance(performed, Write), performed
        return len(performed.data)

    def resize(self, inode: Inode, size: int, path: str) -> None:
        """Set the size of a file to ``size`` bytes; new bytes read as zeros."""
        self._perform(_new(Resize, (path, inode.number, size, inode.size, self.now_ns())))

    def allocate(self, inode: Inode, end: int, path: str) -> None:
        """Extend a file to ``end`` bytes with zeros, if it is shorter."""
        self._perform(Allocate(path, inode.number, end, inode.size, self.now_ns()))

    def link(self, inode: Inode, directory: Inode, name: str, path: str) -> None:
        """Give an inode a further name."""
        self._perform(Link(path, inode.number, directory.number, name, self.now_ns()))

    def unlink(self, inode: Inode, directory: Inode, name: str, path: str) -> None:
        """Remove a name; an inode without names stays usable through open descriptors."""
        self._perform(Unlink(path, inode.number, directory.number, name, self.now_ns()))

    def rename(
        self,
        inode: Inode,
        directory: Inode,
        name: str,
        to_directory: Inode,
        to_name: str,
        path: str,
        to_path: str,
    ) -> None:
        """Move a name, in place of any inode that has the new name."""
        replaced = to_directory.entries.get(to_name, 0)
        links_left = self.cache.links_left(replaced) if replaced else 0
        self._perform(
            _new(Rename, (
                path, inode.number, directory.number, name,
                to_path, to_directory.number, to_name, replaced, links_left, self.now_ns(),
            ))
        )  # fmt: skip

    def set_attributes(
        self,
        inode: Inode,
        path: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        times_ns: tuple[int, int] | None = None,
    ) -> None:
        """Change permission bits, owner, or times of access and modification.

        ``mode`` includes the type bits.
        """
        atime_ns, mtime_ns = times_ns or (inode.atime_ns, inode.mtime_ns)
        self._perform(
            SetAttributes(
                path,
                inode.number,
                inode.mode if mode is None else mode,
                inode.uid if uid is None else uid,
                inode.gid if gid is None else gid,
                atime_ns,
                mtime_ns,
                self.now_ns(),
            )
        )

    def sync(
        self, number: int, path: str, data_only: bool = False, start: int = 0, end: int = 0
    ) -> None:
        """Barrier on inode ``number``: ``fsync``, or ``fdatasync`` with ``data_only``.

        With ``end``, it covers only the data in the pages from byte ``start`` up to ``end``.
        Raises ``OSError`` (EIO) if the interposer made it fail under a policy that reports
        the failure; ``sync_errors`` then counts it for the other descriptors of the inode.
        """
        performed = self._perform(_new(Sync, (path, number, data_only, start, end)))
        if isinstance(performed, FailedSync):
            self._report_failure(performed)
        elif number in self._delayed_errors:
            self._delayed_errors.discard(number)
            self._raise_failure(number, path)

    def drop_pages(self, number: int, path: str, start: int, end: int) -> None:
        """Drop the pages of these bytes of inode ``number`` from the page cache.

        ``end`` is 0 for all to the end of the file. A page that is not lost, or in which something
        is unsynced, stays as it is; so this is no operation unless a barrier on the file has
        failed.
        """
        if number in self._with_lost_data:
            self._perform(DropPages(path, number, start, end))

    def sync_all(self) -> None:
        """Barrier on every inode: ``sync(2)``."""
        self._perform(Sync("", 0, data_only=False))

    def _perform(self, operation: Operation) -> Operation:
        """Carry out an operation, or the one that the interposer puts in its place; return it."""
        if self.off:
            raise PowerOff(DEAD)
        interposer = self.interposer
        if interposer is not None:
            operation = interposer.before(operation, self.operations + 1)
        self._record(operation)
        operation.apply(self.cache)
        if isinstance(operation, FailedSync):
            self._with_lost_data.add(operation.inode)
        elif isinstance(operation, DropPages):
            self.cache.own(operation.inode).replace_blocks(self._dropped())
        if interposer is not None:
            interposer.after(operation, self.operations)
        return operation

    def _dropped(self) -> Mapping[int, bytes]:
        """Return the blocks that the last operation has dropped, as the program reads them now."""
        return self.unsynced().dropped

    def observe(self, performing: Callable[[int], None]) -> None:
        """Call ``performing(number)`` for each operation that is about to be carried out."""
        operations, record = self.journal.operations, self._record

        def observed(operation: Operation) -> None:
            record(operation)
            performing(len(operations))

        self._record = observed

    # -- fsync that fails --------------------------------------------------------------

    def _report_failure(self, failed: FailedSync) -> None:
        """Raise the error of a failed barrier now, at the next barrier, or not at all."""
        match failed.policy:
            case SyncFailure.LYING:
                pass
            case SyncFailure.EXT4_JOURNAL if failed.inode not in self._delayed_errors:
                self._delayed_errors.add(failed.inode)
            case _:
                self._raise_failure(failed.inode, failed.path)

    def _raise_failure(self, number: int, path: str) -> NoReturn:
        self.sync_errors[number] = self.sync_errors.get(number, 0) + 1
        raise os_error(errno.EIO, path)

    # -- operations of another process -----------------------------------------------------

    def report(self) -> object:
        """Return the operations done on this disk, as a value that can be pickled."""
        return self.journal.operations

    def accept(self, report: object) -> None:
        """Carry out the operations that another process reported of its copy of this disk."""
        assert isinstance(report, list), report
        self.repeat(report)

    # -- images and journals -------------------------------------------------------------

    @classmethod
    def from_journal(
        cls,
        journal: Journal,
        model: PersistenceModel = POSIX,
        now_ns: Callable[[], int] | None = None,
    ) -> Disk:
        """Return a disk that has carried out the operations of ``journal``, under ``model``.

        The journal may be of a disk with another model, or from elsewhere. Every operation is
        checked: ``HarnessError`` names the first one that cannot follow the ones before it.
        """
        journal.check_image()
        disk = cls(journal.image, model, now_ns)
        disk.repeat(journal)
        return disk

    def repeat(self, operations: Iterable[Operation]) -> None:
        """Carry out operations that another disk carried out.

        Raises ``HarnessError`` with the first one that cannot follow the ones before it.
        """
        for number, operation in enumerate(operations, 1):
            reason = refusal(operation, self.cache)
            if reason:
                kind = type(operation).__name__
                raise HarnessError(f"operation {number} of the journal, {kind}: {reason}")
            self._perform(operation)
            if isinstance(operation, Create):
                self.next_inode = max(self.next_inode, operation.inode + 1)

    def unsynced(self) -> Unsynced:
        """Return the unsynced pieces and the platter, up to the last operation.

        They belong to the disk, which advances them at each call; callers must not.
        """
        unsynced = self._unsynced
        if unsynced is None:
            unsynced = Unsynced(self.model, self.image.platter, self.image.unsynced)
            self._unsynced = unsynced
        for number, operation in enumerate(self.journal[self._read :], self._read + 1):
            unsynced.advance(operation, number)
        self._read = self.operations
        return unsynced

    def power_cut(self, survivors: SurvivorSet) -> Image:
        """Return the disk that the next boot finds after a power cut at this moment.

        Raises ``HarnessError`` if the model does not allow these survivors.
        """
        return self.unsynced().crash(survivors, self.next_inode)

    def files(self) -> dict[str, bytes]:
        """Return the content of every regular file by path, as a running program reads it."""
        return Image.of_platter(self.cache.view(), self.next_inode).files()

    def unmounted(self) -> Image:
        """Return the image that a clean unmount leaves: the page cache, all of it durable."""
        return Image.of_platter(self.cache.freeze(), self.next_inode)

    def snapshot(self) -> Image:
        """Return the image after a kill: page cache, unsynced pieces and platter."""
        unsynced = self.unsynced()
        return Image(
            platter=unsynced.platter,
            unsynced=unsynced.carried_over(self.operations),
            cached=self.cache.freeze(),
            next_inode=self.next_inode,
        )
