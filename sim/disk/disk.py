"""The running disk: one page cache over one platter, seen by one process after the other.

It works on inodes; paths, descriptors and errno belong to ``handle.py``. Each mutating
method is one operation: it passes the interposer, changes the page cache, and is entered
in the journal. What of it would survive a power cut is decided only when somebody asks,
by reading the journal under the disk's persistence model (``unsynced.py``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.journal import CREATE, ENTERED, RENAME, RESIZE, SYNC, WRITE, Journal, recorded
from sim.disk.cache.locks import LockTable
from sim.disk.cache.operation import (
    DescriptorInterposer,
    FailedSync,
    Interposer,
    Link,
    Operation,
    SetAttributes,
    Sync,
    SyncFailure,
    Unlink,
)
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.errors import PowerOff

EPOCH_NS: Final = 1_700_000_000_000_000_000
TICK_NS: Final = 1_000

DEAD: Final = "the process that made this call is dead"


class Disk:
    """A file system that is mounted, until a crash ends it.

    ``image`` is what it starts from; it is never changed. ``model`` says what may survive
    a power cut. ``now_ns`` gives time stamps; left out, every look at it is one
    microsecond after the last.

    ``operations`` counts the mutating operations so far. ``interposer`` and
    ``descriptor_interposer`` may be set at any time; None means that nothing stands between
    the program and the disk. It is ``calm`` while the power is on, neither of them is set
    and no sync has failed: then a call has nothing to look at but itself.
    """

    def __init__(
        self,
        image: Image | None = None,
        model: PersistenceModel = POSIX,
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        self.image = image if image is not None else Image.empty()
        self.model = model
        self.now_ns = now_ns or count(EPOCH_NS, TICK_NS).__next__
        self.cache = InodeTable(self.image.cached)
        self._journal = Journal()
        self._notes = self._journal.notes
        self.calm = True
        self._interposer: Interposer | None = None
        self._descriptor_interposer: DescriptorInterposer | None = None
        self.off = False
        self.sync_errors: dict[int, int] = {}
        self.locks = LockTable()
        self._errors_to_come: set[int] = set()
        self.next_inode = self.image.next_inode
        self._unsynced: Unsynced | None = None
        self._folded = 0

    @property
    def operations(self) -> int:
        return len(self._journal.records())

    @property
    def journal(self) -> list[Operation]:
        """Every operation of this lifetime, in order; only the disk itself adds to it."""
        return self._journal.records()

    @property
    def interposer(self) -> Interposer | None:
        return self._interposer

    @interposer.setter
    def interposer(self, interposer: Interposer | None) -> None:
        self._interposer = interposer
        self._see_if_calm()

    @property
    def descriptor_interposer(self) -> DescriptorInterposer | None:
        return self._descriptor_interposer

    @descriptor_interposer.setter
    def descriptor_interposer(self, interposer: DescriptorInterposer | None) -> None:
        self._descriptor_interposer = interposer
        self._see_if_calm()

    @property
    def root(self) -> Inode:
        """The root directory, in the page cache."""
        return self.cache.own(ROOT)

    def inode(self, number: int) -> Inode:
        """Return the page cache's inode of this number; it exists as long as the disk does."""
        return self.cache.own(number)

    def power_off(self) -> None:
        """End this lifetime: from now on every call raises ``PowerOff`` and changes nothing."""
        self.off = True
        self._see_if_calm()

    def _see_if_calm(self) -> None:
        watched = self._interposer is not None or self._descriptor_interposer is not None
        self.calm = not (self.off or watched or self.sync_errors or self._errors_to_come)

    # -- operations ------------------------------------------------------------------

    # An entry is an operation, or the note that one will be made from (``journal.py``).
    # ``create``, ``write``, ``resize``, ``rename`` and ``sync`` say by themselves what
    # ``_enter`` and ``_leave`` say: two calls are a tenth of what they cost.

    def _enter(self, entry: Any) -> Any:
        """Let the interposer look at an operation that is about to happen."""
        if self.off:
            raise PowerOff(DEAD)
        operation = recorded(entry)
        if self._interposer is not None:
            operation = self._interposer.before(operation, len(self._journal.records()) + 1)
        return operation

    def _leave(self, entry: Any) -> None:
        """Enter an operation that happened in the journal."""
        if self.calm:
            self._notes.extend((ENTERED, entry))
            return
        records = self._journal.records()
        records.append(entry)
        if self._interposer is not None:
            self._interposer.after(entry, len(records))

    def create(
        self,
        directory: Inode,
        name: str,
        mode: int,
        path: str,
        target: str = "",
        owner: tuple[int, int] = (0, 0),
    ) -> Inode:
        """Make a new inode under ``name`` (empty: under none); ``mode`` has the type bits.

        ``owner`` is uid and gid.
        """
        clock, number = self.now_ns, self.next_inode
        now_ns = clock()
        entry: Any = (
            CREATE, path, number, mode, owner, now_ns, target, directory.number, name
        )  # fmt: skip
        if not self.calm:
            entry = self._enter(entry)
        self.next_inode = number + 1
        self.cache.changed[number] = inode = Inode.new(number, mode, now_ns, owner, target)
        if name:
            self.cache.attach_own(directory, name, inode)
            directory.mtime_ns = directory.ctime_ns = now_ns
        if self.calm:
            self._notes.extend(entry)
        else:
            self._leave(entry)
        return inode

    def write(self, inode: Inode, offset: int, data: bytes, path: str) -> int:
        """Write ``data`` at ``offset`` (bytes); return how many bytes were taken."""
        entry: Any = (WRITE, path, inode.number, offset, data, inode.size)
        if not self.calm:
            entry = self._enter(entry)
            data = entry.data
        length = len(data)
        inode.write(offset, data)
        end = offset + length
        if end > inode.size:
            inode.size = end
        clock = self.now_ns  # in two steps: an attribute that is called at once is found slowly
        inode.mtime_ns = inode.ctime_ns = clock()
        if self.calm:
            self._notes.extend(entry)
        else:
            self._leave(entry)
        return length

    def resize(self, inode: Inode, size: int, path: str) -> None:
        """Cut the file to ``size`` bytes, or let it grow to it with zeros."""
        entry: Any = (RESIZE, path, inode.number, size, inode.size)
        if not self.calm:
            entry = self._enter(entry)
        if size < inode.size:
            inode.cut(size)
        inode.size = size
        clock = self.now_ns
        inode.mtime_ns = inode.ctime_ns = clock()
        if self.calm:
            self._notes.extend(entry)
        else:
            self._leave(entry)

    def link(self, inode: Inode, directory: Inode, name: str, path: str) -> None:
        """Give an inode one more name."""
        operation = self._enter(Link(path, inode.number, directory.number, name))
        self.cache.attach(directory.number, name, inode.number)
        now_ns = self.now_ns()
        inode.ctime_ns = directory.mtime_ns = directory.ctime_ns = now_ns
        self._leave(operation)

    def unlink(self, inode: Inode, directory: Inode, name: str, path: str) -> None:
        """Take a name away; an inode without names lives on for those who hold it open."""
        operation = self._enter(Unlink(path, inode.number, directory.number, name))
        self.cache.detach(directory.number, name)
        now_ns = self.now_ns()
        inode.ctime_ns = directory.mtime_ns = directory.ctime_ns = now_ns
        self._leave(operation)

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
        """Move a name, over whatever the new name meant before."""
        replaced = to_directory.entries.get(to_name, 0)
        entry: Any = (
            RENAME, path, inode.number, directory.number, name,
            to_path, to_directory.number, to_name, replaced,
        )  # fmt: skip
        if not self.calm:
            entry = self._enter(entry)
        lost = self.cache.move_own(directory, name, to_directory, to_name, inode)
        clock = self.now_ns
        now_ns = clock()
        inode.ctime_ns = directory.ctime_ns = to_directory.ctime_ns = now_ns
        directory.mtime_ns = to_directory.mtime_ns = now_ns
        if lost is not None:
            lost.ctime_ns = now_ns
        if self.calm:
            self._notes.extend(entry)
        else:
            self._leave(entry)

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
        """Change permission bits, owner or times; ``mode`` keeps the type bits it had."""
        atime_ns, mtime_ns = times_ns or (inode.atime_ns, inode.mtime_ns)
        operation = self._enter(
            SetAttributes(
                path,
                inode.number,
                inode.mode if mode is None else mode,
                inode.uid if uid is None else uid,
                inode.gid if gid is None else gid,
                atime_ns,
                mtime_ns,
            )
        )
        assert isinstance(operation, SetAttributes)
        inode.mode, inode.uid, inode.gid = operation.mode, operation.uid, operation.gid
        inode.atime_ns, inode.mtime_ns = atime_ns, mtime_ns
        inode.ctime_ns = self.now_ns()
        self._leave(operation)

    def sync(self, number: int, path: str, data_only: bool = False) -> None:
        """Barrier on one inode (``fsync``, or ``fdatasync`` with ``data_only``).

        Raises ``OSError`` (EIO) when the interposer let it fail under a policy that
        tells; ``sync_errors`` then counts it for the other descriptors of this inode.
        """
        entry: Any = (SYNC, path, number, data_only)
        if self.calm:
            self._notes.extend(entry)
            return
        operation = self._enter(entry)
        if isinstance(operation, FailedSync):
            self._fail_sync(operation)
            return
        self._leave(operation)
        if number in self._errors_to_come:
            self._errors_to_come.discard(number)
            self._report(number, path)

    def sync_all(self) -> None:
        """Barrier on everything (``sync(2)``)."""
        self._leave(self._enter(Sync("", 0, False)))

    # -- fsync that fails --------------------------------------------------------------

    def _fail_sync(self, failed: FailedSync) -> None:
        records = self._journal.records()
        records.append(failed)
        if failed.policy is SyncFailure.BTRFS:
            self._drop_pages(failed.inode)
        if self._interposer is not None:
            self._interposer.after(failed, len(records))
        if failed.policy is SyncFailure.LYING:
            return
        if failed.policy is SyncFailure.EXT4_JOURNAL and failed.inode not in self._errors_to_come:
            self._errors_to_come.add(failed.inode)
            self._see_if_calm()
            return
        self._report(failed.inode, failed.path)

    def _drop_pages(self, number: int) -> None:
        """Let the page cache show what is left of a file without the data that was dropped."""
        left, inode = self.power_cut(SurvivorSet()).platter[number], self.cache.own(number)
        inode.blocks, inode.size = left.blocks, left.size

    def _report(self, number: int, path: str) -> None:
        self.sync_errors[number] = self.sync_errors.get(number, 0) + 1
        self._see_if_calm()
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    # -- what a crash would leave ------------------------------------------------------

    def unsynced(self) -> Unsynced:
        """Return what no barrier has covered yet, and the platter beneath it.

        It belongs to the disk: it is brought up to date at every call, and is not to be
        advanced by anyone else.
        """
        unsynced = self._unsynced
        if unsynced is None:
            unsynced = self._unsynced = Unsynced(
                self.model, self.image.platter, self.image.unsynced
            )
        journal = self.journal
        while self._folded < len(journal):
            operation = journal[self._folded]
            self._folded += 1
            unsynced.advance(operation, self._folded)
        return unsynced

    def power_cut(self, survivors: SurvivorSet) -> Image:
        """Return the disk that the next boot finds if the power is cut now.

        Raises ``HarnessError`` if the model does not allow these survivors.
        """
        return self.unsynced().crash(survivors, self.next_inode)

    def files(self) -> dict[str, bytes]:
        """Return the content of every regular file by path, as a running program reads it.

        Cheaper than ``snapshot().files()``: what is unsynced need not be known for it.
        """
        return Image.of_platter(self.cache.view(), self.next_inode).files()

    def unmounted(self) -> Image:
        """Return the disk as it is, with nothing unsynced: for when no power is cut any more.

        Cheaper than ``snapshot``, which has to find out what is.
        """
        return Image.of_platter(self.cache.freeze(), self.next_inode)

    def snapshot(self) -> Image:
        """Return the disk as it is: page cache, unsynced operations and platter.

        It is also what the next process finds after a **kill**.
        """
        unsynced = self.unsynced()
        return Image(
            platter=unsynced.platter,
            unsynced=unsynced.carried_over(self.operations),
            cached=self.cache.freeze(),
            next_inode=self.next_inode,
        )
