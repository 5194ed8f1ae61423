"""Open a database on the simulated disk, and leave it when its process is dead."""

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

READ_WRITE_CREATE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class SimulatedConnection(apsw.Connection):
    """An ``apsw.Connection`` with a VFS of its own, for one ``lifetime``.

    It checks in ``exec_trace`` that its process is alive. A program that sets a tracer of
    its own can still run statements on a dead connection; they change nothing.
    """

    lifetime: Lifetime

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Commit or roll back; when that is the crash, let no failure to roll back hide it."""
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
    """Return the crash that ``error`` came after, if one did."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SimulatedCrash):
        cause = cause.__context__
    return cause


def connect(
    process: Process, path: str, *, flags: int = READ_WRITE_CREATE, seed: int = 0
) -> SimulatedConnection:
    """Open ``path`` for the process of ``process``; ``flags`` are ``SQLITE_OPEN_…``.

    ``seed`` is mixed into the random numbers that SQLite writes to the disk. Device
    characteristics follow the persistence model of the disk. Raises what ``apsw`` raises,
    and ``SimulatedCrash`` if creating the file was the crash point.
    """
    vfs = SimulatedVFS(process, seed)
    connection = SimulatedConnection(path, flags, vfs.name)
    connection.lifetime = vfs.lifetime
    connection.exec_trace = vfs.lifetime.let_statement
    return connection


def abandon(connection: apsw.Connection) -> None:
    """Close a connection whose process is dead; the disk is not touched."""
    if not isinstance(connection, SimulatedConnection):
        raise HarnessError(f"{connection!r} was not opened with sim.sqlite.connect")
    connection.lifetime.is_dead = True
    with suppress(apsw.Error, PowerOff, SimulatedCrash):
        connection.close(True)
