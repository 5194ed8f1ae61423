"""A disk that fills up: ENOSPC by quota, at the write, late at the fsync, or at the close.

Space is counted by growth: a write takes the bytes by which its file grows; truncating or
removing the file returns them. Overwriting takes none, holes count as if written, and a file
that is removed while open returns its space at once.

At the write, Linux takes as many bytes as fit and returns a short count; only a write of which
none fits fails. With delayed allocation (NFS, quotas) the writes succeed, and the barrier or
the close of a file with new data fails as long as there is no room; the data stays unsynced.
"""

from __future__ import annotations

import errno
import os

from faults.call_kind import CallKind
from faults.fault_plan import AfterGrowth, FaultRule
from faults.injectors.rule_injector import RuleInjector
from sim.disk.cache.operation import Operation, Rename, Resize, Sync, Unlink, Write
from sim.disk.disk import Disk


class SpaceInjector(RuleInjector):
    """Counts the space that matching files take, and refuses the calls that exceed it."""

    __slots__ = ("_disk", "_room_bytes", "_taken")

    def __init__(self, rule: FaultRule, condition: AfterGrowth) -> None:
        super().__init__(rule)
        self._room_bytes = condition.room_bytes
        self._taken: dict[int, int] = {}
        self._disk: Disk | None = None

    def boot(self, disk: Disk) -> None:
        """Adopt the files that the crash left, at their sizes after it."""
        self._disk = disk
        for number, taken in list(self._taken.items()):
            inode = disk.cache.get(number)
            self._taken[number] = min(taken, inode.size if inode is not None else 0)

    def before(self, operation: Operation, number: int) -> Operation:
        """Refuse or shorten a write, or refuse a barrier."""
        calls = self.rule.calls
        if calls is CallKind.WRITE and isinstance(operation, Write):
            if self.strikes_operation(operation, number):
                return self._fitted(operation)
        elif (
            calls is CallKind.FSYNC
            and isinstance(operation, Sync)
            and self.strikes_operation(operation, number)
        ):
            self._check(operation.path, operation.inode)
        return operation

    def after(self, operation: Operation, _number: int) -> None:
        """Keep count of the space, also while switched off."""
        match operation:
            case Write(path, inode, offset, data, size) if self.rule.matches(self.rule.calls, path):
                growth = max(0, offset + len(data) - size)
                self._taken[inode] = self._taken.get(inode, 0) + growth
            case Resize(inode=inode, size=size, size_before=before) if inode in self._taken:
                self._taken[inode] = max(0, self._taken[inode] - max(0, before - size))
            case Unlink(inode=inode) | Rename(replaced=inode):
                self._forget_removed(inode)

    def closing(self, path: str, inode: int) -> None:
        """Refuse a close."""
        if self.strikes(CallKind.CLOSE, path):
            self._check(path, inode)

    def _fitted(self, write: Write) -> Write:
        room_bytes = self._room_bytes - sum(self._taken.values())
        growth = max(0, write.offset + len(write.data) - write.size_before)
        missing = growth - max(0, room_bytes)
        if missing <= 0:
            return write
        if missing >= len(write.data):
            raise self._error(write.path)
        self.fired += 1
        return write._replace(data=write.data[: len(write.data) - missing])

    def _check(self, path: str, inode: int) -> None:
        if self._taken.get(inode) and sum(self._taken.values()) > self._room_bytes:
            raise self._error(path)

    def _forget_removed(self, number: int) -> None:
        assert self._disk is not None, "a rule is installed before its first operation"
        if number in self._taken:
            inode = self._disk.cache.get(number)
            if inode is None or not inode.links:
                del self._taken[number]

    def _error(self, path: str) -> OSError:
        self.fired += 1
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
