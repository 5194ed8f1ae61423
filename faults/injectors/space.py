"""A disk that fills up: ENOSPC by quota, at the write, late at the fsync, or at the close.

Space is counted by growth: a write takes what it adds to the size of its file; cutting or
removing the file gives it back. Overwriting needs none, holes count as if written, and a
file that is removed while open gives its space back at once.

At the write, Linux takes what fits and returns a short count; only a write of which
nothing fits fails. With delayed allocation (NFS, quotas) the writes succeed, and the
barrier or the close of a file that holds new data fails, as long as there is no room; the
data stays pending.
"""

from __future__ import annotations

import errno
import os

from faults.fault_moment import After
from faults.fault_rule import Calls
from faults.injectors.passing import Injector, Passing
from faults.injectors.trigger import Trigger
from sim.disk.cache.operation import Operation, Rename, Resize, Sync, Unlink, Write
from sim.disk.disk import Disk


class SpaceInjector(Passing):
    """Counts the space that matching files take, and refuses what does not fit."""

    __slots__ = ("_disk", "_room_bytes", "_taken", "_trigger")

    def __init__(self, trigger: Trigger, moment: After, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._room_bytes = moment.room_bytes
        self._taken: dict[int, int] = {}
        self._disk: Disk | None = None

    def boot(self, disk: Disk) -> None:
        """Take over the files that the crash left, at the sizes that it left them."""
        self._disk = disk
        for number, taken in list(self._taken.items()):
            inode = disk.cache.get(number)
            self._taken[number] = min(taken, inode.size if inode is not None else 0)
        self.behind.boot(disk)

    def before(self, operation: Operation, number: int) -> Operation:
        """Refuse or shorten a write, or refuse a barrier."""
        trigger = self._trigger
        if trigger.rule.calls is Calls.WRITE and isinstance(operation, Write):
            if trigger.strikes_operation(operation, number):
                operation = self._fitted(operation)
        elif (
            trigger.rule.calls is Calls.FSYNC
            and isinstance(operation, Sync)
            and trigger.strikes_operation(operation, number)
        ):
            self._check(operation.path, operation.inode)
        return self.behind.before(operation, number)

    def after(self, operation: Operation, number: int) -> None:
        """Keep count of the space."""
        match operation:
            case Write(path, inode, offset, data, size) if self._counts(path):
                growth = max(0, offset + len(data) - size)
                self._taken[inode] = self._taken.get(inode, 0) + growth
            case Resize(_, inode, size, before) if inode in self._taken:
                self._taken[inode] = max(0, self._taken[inode] - max(0, before - size))
            case Unlink(inode=inode) | Rename(replaced=inode):
                self._forget_removed(inode)
        self.behind.after(operation, number)

    def closing(self, path: str, inode: int) -> None:
        """Refuse a close."""
        if self._trigger.strikes(Calls.CLOSE, path):
            self._check(path, inode)
        self.behind.closing(path, inode)

    def _counts(self, path: str) -> bool:
        """Say whether the space that a write to ``path`` takes counts, even while switched off."""
        return self._trigger.rule.matches(self._trigger.rule.calls, path)

    def _fitted(self, write: Write) -> Write:
        room_bytes = self._room_bytes - sum(self._taken.values())
        growth = max(0, write.offset + len(write.data) - write.size)
        missing = growth - max(0, room_bytes)
        if missing <= 0:
            return write
        if missing >= len(write.data):
            raise self._error(write.path)
        self._trigger.fired += 1
        return write._replace(data=write.data[: len(write.data) - missing])

    def _check(self, path: str, inode: int) -> None:
        if self._taken.get(inode) and sum(self._taken.values()) > self._room_bytes:
            raise self._error(path)

    def _forget_removed(self, number: int) -> None:
        if number in self._taken and self._disk is not None:
            inode = self._disk.cache.get(number)
            if inode is None or not inode.links:
                del self._taken[number]

    def _error(self, path: str) -> OSError:
        self._trigger.fired += 1
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
