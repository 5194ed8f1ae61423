"""The runtime's database port on the simulated disk: real SQLite through its VFS."""

from __future__ import annotations

from typing import Final

import apsw
from apsw import Connection

from sim.disk.calls.process import Process
from sim.sqlite.connection import abandon, connect
from system.storage.database_pragmas import DATABASE_PRAGMAS

PAGE_BYTES: Final = 1_024
"""Two sectors: a page can be torn, and a crash point has few survivor sets."""

_LOG_PAGES: Final = 128
"""The pages of a write-ahead log after which SQLite moves it, so that a run has checkpoints."""


class SimulatedDatabase:
    """The databases of one simulated host; implements ``system.ports.Database``."""

    __slots__ = ("_connections", "_process")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._connections: list[Connection] = []

    @property
    def connection(self) -> Connection | None:
        """The connection that was opened last, unless it was closed or abandoned."""
        last = self._connections[-1] if self._connections else None
        return last if last is not None and is_open(last) else None

    def open(self, path: str) -> Connection:
        """Open or create a database, and run ``DATABASE_PRAGMAS`` in their order."""
        connection = connect(self._process, path if path.startswith("/") else f"/{path}")
        self._connections.append(connection)
        try:
            for pragma in (
                f"PRAGMA page_size={PAGE_BYTES}",
                f"PRAGMA wal_autocheckpoint={_LOG_PAGES}",
                *DATABASE_PRAGMAS,
            ):
                connection.execute(pragma).fetchall()
        except apsw.Error:
            connection.close(True)
            raise
        return connection

    def abandon(self) -> None:
        """Abandon every connection of a dead process, without a call on the disk."""
        while self._connections:
            abandon(self._connections.pop())


def is_open(connection: Connection) -> bool:
    """Return whether a connection was not closed."""
    try:
        return bool(connection.filename)
    except apsw.ConnectionClosedError:
        return False
