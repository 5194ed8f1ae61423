"""Real SQLite: committed rows survive, other rows may survive, and the file is well formed."""

from __future__ import annotations

from typing import Final

from apsw import Connection

from crash_tests.workloads.workload import Run, Workload
from oracles.history import History, Known
from oracles.shadow_log import ShadowLog
from oracles.violation import TornRecord
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.sqlite.connection import abandon, connect

_PATH: Final = "/main.db"
_PAGE_BYTES: Final = 1024
"""Two sectors: a page can be torn, and a crash point has few states."""
_ROWS: Final = ("Anna", "Bertram", "Cäcilie")


def _opened(process: Process, journal: str, synchronous: str) -> Connection:
    connection = connect(process, _PATH)
    for pragma in (
        f"page_size={_PAGE_BYTES}",
        "locking_mode=EXCLUSIVE",
        f"journal_mode={journal}",
        f"synchronous={synchronous}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _insert(journal: str, synchronous: str) -> Run:
    def insert(process: Process, ack: History) -> None:
        connection = _opened(process, journal, synchronous)
        connection.execute("CREATE TABLE names (name TEXT)")
        for name in _ROWS:
            ack.attempt(name)
            connection.execute("INSERT INTO names VALUES (?)", (name,))
            ack(name)
        connection.close()

    return insert


def _check(journal: str, synchronous: str) -> TwoPhases[list[object]]:
    def recover(process: Process) -> list[object]:
        connection = _opened(process, journal, synchronous)
        try:
            answer = connection.execute("PRAGMA integrity_check").fetchall()
            if answer != [("ok",)]:
                raise TornRecord("the database is malformed", integrity_check=answer)
            tables = connection.execute("SELECT name FROM sqlite_schema").fetchall()
            rows = connection.execute("SELECT name FROM names").fetchall() if tables else []
            connection.close()
        finally:
            abandon(connection)
        return [name for (name,) in rows]

    return TwoPhases(recover, _judge)


def _judge(names: list[object], known: Known) -> None:
    shadow: ShadowLog[object] = ShadowLog()
    for name in known.acknowledged:
        shadow.begin(name)
        shadow.acknowledge()
    for name in known.in_flight:
        shadow.begin(name)
    shadow.settle(names)


def _commits(journal: str, synchronous: str, *, sound: bool = True) -> Workload:
    return Workload(
        f"SQLite with journal_mode={journal} and synchronous={synchronous}: three commits",
        _insert(journal, synchronous),
        _check(journal, synchronous),
        sound=sound,
    )


wal_full = _commits("WAL", "FULL")
delete_extra = _commits("DELETE", "EXTRA")
wal_normal = _commits("WAL", "NORMAL", sound=False)
