"""The runtime's database port on the simulated disk: real SQLite through its VFS."""

from __future__ import annotations

from apsw import Connection

from sim.disk.calls.process import Process
from sim.sqlite.connection import abandon, connect
from system.ports import DATABASE_PRAGMAS


class SimulatedDatabase:
    """The databases of one simulated host; implements ``system.ports.Database``."""

    __slots__ = ("_connections", "_handle")

    def __init__(self, process: Process) -> None:
        self._handle = process
        self._connections: list[Connection] = []

    def open(self, path: str) -> Connection:
        """Open or create a database, with ``DATABASE_PRAGMAS`` run in their order."""
        connection = connect(self._handle, path if path.startswith("/") else f"/{path}")
        self._connections.append(connection)
        for pragma in DATABASE_PRAGMAS:
            connection.execute(pragma).fetchall()
        return connection

    def abandon(self) -> None:
        """Leave every connection: the process is dead, and the disk is not touched."""
        while self._connections:
            abandon(self._connections.pop())
