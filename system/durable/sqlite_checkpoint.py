"""Checkpoints of SQLite: its write-ahead log is moved into ``state.db`` after a commit.

SQLite ignores a checkpoint that fails, and repeats it. If the barrier of the database has failed,
that loses data: ext4 loses what is written again to the blocks of a failed append, and SQLite then
overwrites its log (docs/disk.md, Failed barriers). So the database stops, its log stays as it is,
and the next boot drops the database from the page cache before the next checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from apsw import Connection


class SqliteCheckpoint:
    """The hook of a connection that moves its log into the database, in place of that of SQLite.

    It does so at as many pages as SQLite does: 1,000, or ``PRAGMA wal_autocheckpoint``. ``failure``
    is the reason why a barrier has failed, or None. After that it moves nothing.
    """

    def __init__(self, connection: Connection) -> None:
        self.failure: str | None = None
        self._most_pages = connection.pragma("wal_autocheckpoint")
        # The connection refers to it, and it does not refer to the connection.
        connection.set_wal_hook(self)

    def __call__(self, connection: Connection, name: str, pages: int) -> int:
        if pages >= self._most_pages and self.failure is None:
            try:
                connection.wal_checkpoint(name)
            except apsw.Error as failure:
                # The commit is durable, and after other failures the next one tries again.
                if getattr(failure, "extendedresult", 0) == apsw.SQLITE_IOERR_FSYNC:
                    self.failure = str(failure)
        return apsw.SQLITE_OK
