"""Real SQLite: committed rows survive, the others are there or not, the file is sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apsw import Connection

from crash_tests.workloads.workload import Scenario
from oracles.history import History, Known
from oracles.shadow_log import ShadowLog
from oracles.violation import TornRecord
from powercut.explorer.explore import Check, Workload
from sim.disk.calls.process import Process
from sim.sqlite import abandon, connect

_PATH: Final = "/main.db"
_PAGE_BYTES: Final = 1024
"""Two sectors: a page can be torn, and a crash point has few states."""
_ROWS: Final = ("Anna", "Bertram", "Cäcilie")


def _opened(disk: Process, journal: str, synchronous: str) -> Connection:
    connection = connect(disk, _PATH)
    for pragma in (
        f"page_size={_PAGE_BYTES}",
        "locking_mode=EXCLUSIVE",
        f"journal_mode={journal}",
        f"synchronous={synchronous}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _inserting(journal: str, synchronous: str) -> Workload:
    def workload(disk: Process, ack: History) -> None:
        connection = _opened(disk, journal, synchronous)
        connection.execute("CREATE TABLE names (name TEXT)")
        for name in _ROWS:
            ack.attempt(name)
            connection.execute("INSERT INTO names VALUES (?)", (name,))
            ack(name)
        connection.close()

    return workload


def _reading(journal: str, synchronous: str) -> Check:
    def check(disk: Process, known: Known) -> None:
        shadow: ShadowLog[object] = ShadowLog()
        for name in known.acknowledged:
            shadow.begin(name)
            shadow.acknowledge()
        for name in known.in_flight:
            shadow.begin(name)
        connection = _opened(disk, journal, synchronous)
        try:
            answer = connection.execute("PRAGMA integrity_check").fetchall()
            if answer != [("ok",)]:
                raise TornRecord("the database is malformed", integrity_check=answer)
            tables = connection.execute("SELECT name FROM sqlite_schema").fetchall()
            rows = connection.execute("SELECT name FROM names").fetchall() if tables else []
            shadow.settle([name for (name,) in rows])
            connection.close()
        finally:
            abandon(connection)

    return check


def _scenario(journal: str, synchronous: str, *, sound: bool = True) -> Scenario:
    return Scenario(
        f"sqlite-{journal}-{synchronous}".lower(),
        f"SQLite with journal_mode={journal} and synchronous={synchronous}: three commits",
        _inserting(journal, synchronous),
        _reading(journal, synchronous),
        sound=sound,
    )


wal_full = _scenario("WAL", "FULL")
delete_extra = _scenario("DELETE", "EXTRA")
wal_normal = _scenario("WAL", "NORMAL", sound=False)
SCENARIOS: Sequence[Scenario] = (wal_full, delete_extra, wal_normal)
