"""The barriers: ``fsync``, ``fdatasync`` and ``sync``."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from sim.disk.calls.arguments import file_descriptor
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.process_state import ProcessState
from sim.disk.os_error import os_error

if TYPE_CHECKING:
    from _typeshed import HasFileno


class SyncCalls(ProcessState):
    """Calls that make operations durable; the persistence model decides which."""

    __slots__ = ()

    def fsync(self, fd: int | HasFileno) -> None:
        """Make the content and the attributes of an inode durable."""
        self._sync(self._file(fd, file_descriptor))

    def fdatasync(self, fd: int | HasFileno) -> None:
        """Make the content of an inode durable, and the attributes that reading it needs."""
        self._sync(self._file(fd, file_descriptor), data_only=True)

    def sync(self) -> None:
        """Make everything durable."""
        self._must_live()
        self.disk.sync_all()

    def msync(self, file: OpenFile, start: int, end: int) -> None:
        """Make the data in the pages from byte ``start`` up to ``end`` of a mapped file durable."""
        self._must_live()
        self._sync(file, data_only=True, start=start, end=end)

    def _sync(self, file: OpenFile, data_only: bool = False, start: int = 0, end: int = 0) -> None:
        """Sync, or report once an error that another description met since the last sync.

        With ``end``, only the data in the pages from byte ``start`` up to ``end`` is synced.
        Each open file description counts the errors that it has reported: errseq_t of Linux.
        """
        disk, number = self.disk, file.number
        errors = disk.sync_errors.get(number, 0)
        if errors != file.sync_errors:
            # ext4 and xfs of Linux 6.18 return before they commit, and before they flush the disk.
            file.sync_errors = errors
            raise os_error(errno.EIO)
        try:
            disk.sync(number, file.path, data_only, start, end)
        except OSError:
            file.sync_errors = disk.sync_errors.get(number, 0)
            raise
