"""Opening a database on the simulated disk, and leaving it after a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import apsw

from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.sqlite.vfs import SimulatedVFS

if TYPE_CHECKING:
    from types import TracebackType

    from sim.disk.calls.process import Process
    from sim.sqlite.lifetime import Lifetime

AUTOMATIC_CHECKPOINT_PAGES: Final = 1000
"""SQLITE_DEFAULT_WAL_AUTOCHECKPOINT."""
READ_WRITE_CREATE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class SimulatedConnection(apsw.Connection):
    """An ``apsw.Connection`` with a VFS of its own.

    Its ``exec_trace`` checks that the process of ``lifetime`` is alive. A program that sets
    another tracer can run statements on a dead connection; they change nothing.
    """

    lifetime: Lifetime

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Commit or roll back; a crash is raised in place of the failures that it causes."""
        if self.lifetime.is_off and isinstance(error, SimulatedCrash | PowerOff):
            return False
        try:
            return super().__exit__(kind, error, traceback)
        except BaseException as failed:
            crash = _crash_behind(failed)
            if crash is None:
                raise
            raise crash from None


def _crash_behind(error: BaseException) -> SimulatedCrash | None:
    """Return the crash in whose handling ``error`` was raised, if any."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SimulatedCrash):
        cause = cause.__context__
    return cause


def connect(
    process: Process, path: str, *, flags: int = READ_WRITE_CREATE, seed: int = 0
) -> SimulatedConnection:
    """Open the database ``path`` in ``process``; ``flags`` are ``SQLITE_OPEN_…``.

    ``seed`` is mixed into the random numbers that SQLite writes to the disk. Device
    characteristics follow the persistence model of the disk. Raises the errors of
    ``apsw.Connection``, and ``SimulatedCrash`` if creating the file was the crash point.
    """
    vfs = SimulatedVFS(process, seed)
    connection = SimulatedConnection(path, flags, vfs.name)
    connection.lifetime = vfs.lifetime
    connection.exec_trace = vfs.lifetime.allow_statement
    connection.set_wal_hook(_checkpoint_if_due)
    return connection


def _checkpoint_if_due(connection: apsw.Connection, database: str, pages: int) -> int:
    """Checkpoint a long write-ahead log after a commit; a failure changes nothing.

    This is SQLite's default (sqlite3_wal_hook), which ignores failures too. But apsw raises the
    exceptions of a VFS in Python from the commit, which has happened.
    """
    if pages >= AUTOMATIC_CHECKPOINT_PAGES:
        with suppress(apsw.Error):
            connection.wal_checkpoint(database)
    return apsw.SQLITE_OK


def abandon(connection: apsw.Connection) -> None:
    """Close a connection whose process has ended, without changing the disk.

    Raises ``HarnessError`` if it was not opened by ``connect``.
    """
    if not isinstance(connection, SimulatedConnection):
        raise HarnessError(f"{connection!r} was not opened with sim.sqlite.connect")
    connection.lifetime.is_dead = True
    with suppress(apsw.Error, PowerOff, SimulatedCrash):
        connection.close(True)
