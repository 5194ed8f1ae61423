"""Locks between the connections to one disk agree with those of SQLite's unix VFS."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import UnsupportedOperation
from sim.sqlite.connection import connect
from tests.unit.sqlite.arms import both_arms, outcome

BUSY = ("BusyError", apsw.SQLITE_BUSY, apsw.SQLITE_BUSY)

# Each step is the number of one of three connections, and its statement.
SEQUENCES = {
    "a reader delays a commit, which excludes new readers meanwhile": (
        (0, "BEGIN"), (0, "SELECT count(*) FROM t"),
        (1, "BEGIN IMMEDIATE"), (1, "INSERT INTO t VALUES (1)"), (1, "COMMIT"),
        (2, "SELECT count(*) FROM t"), (0, "SELECT count(*) FROM t"), (0, "COMMIT"),
        (1, "COMMIT"), (2, "SELECT count(*) FROM t"),
    ),
    "one reservation at a time, beside readers": (
        (0, "BEGIN IMMEDIATE"), (1, "BEGIN IMMEDIATE"), (2, "SELECT count(*) FROM t"),
        (1, "INSERT INTO t VALUES (1)"), (0, "ROLLBACK"), (1, "BEGIN IMMEDIATE"), (1, "COMMIT"),
    ),
    "exclusive excludes all others": (
        (0, "BEGIN EXCLUSIVE"), (1, "SELECT count(*) FROM t"), (1, "BEGIN IMMEDIATE"),
        (0, "INSERT INTO t VALUES (1)"), (0, "COMMIT"), (1, "SELECT count(*) FROM t"),
    ),
    "two readers that both want to write": (
        (0, "BEGIN"), (1, "BEGIN"), (0, "SELECT count(*) FROM t"), (1, "SELECT count(*) FROM t"),
        (0, "INSERT INTO t VALUES (1)"), (1, "INSERT INTO t VALUES (2)"),
        (0, "COMMIT"), (1, "ROLLBACK"), (0, "COMMIT"), (1, "SELECT count(*) FROM t"),
    ),
    "exclusive locking mode lasts over transactions": (
        (0, "PRAGMA locking_mode=exclusive"), (0, "INSERT INTO t VALUES (1)"),
        (1, "SELECT count(*) FROM t"), (0, "PRAGMA locking_mode=normal"),
        (0, "SELECT count(*) FROM t"), (1, "SELECT count(*) FROM t"),
    ),
    "a spilling writer excludes readers before it commits": (
        (0, "PRAGMA cache_size=1"), (0, "BEGIN"),
        (0, """INSERT INTO t WITH RECURSIVE n(v) AS
               (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 3000) SELECT v FROM n"""),
        (1, "SELECT count(*) FROM t"), (0, "ROLLBACK"), (1, "SELECT count(*) FROM t"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist"])
@pytest.mark.parametrize("steps", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_connections_exclude_each_other_as_on_unix(
    tmp_path: Path, mode: str, steps: tuple[tuple[int, str], ...]
) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        connections = [arm.open("db") for _ in range(3)]
        connections[0].execute("CREATE TABLE t (a)")
        for connection in connections:
            connection.execute(f"PRAGMA journal_mode={mode}")
            assert outcome(connection, "SELECT * FROM t") == []
        answers.append([outcome(connections[number], statement) for number, statement in steps])
        for connection in connections:
            connection.close(True)
    assert BUSY in answers[0]
    assert answers[0] == answers[1]


def test_a_busy_timeout_ends_without_sleeping() -> None:
    process = Process(Disk())
    first, second = connect(process, "/db"), connect(process, "/db")
    first.execute("CREATE TABLE t (a)")
    second.set_busy_timeout(3_600_000)
    first.execute("BEGIN EXCLUSIVE")
    assert outcome(second, "SELECT * FROM t") == BUSY


def test_the_locks_of_a_dead_process_are_released() -> None:
    disk = Disk()
    dead, other = Process(disk), Process(disk)
    first, second = connect(dead, "/db"), connect(other, "/db")
    first.execute("CREATE TABLE t (a)")
    first.execute("BEGIN EXCLUSIVE")
    assert outcome(second, "SELECT * FROM t") == BUSY
    dead.poison()
    assert outcome(second, "SELECT * FROM t") == []


def test_two_disks_do_not_lock_each_other() -> None:
    first, second = connect(Process(Disk()), "/db"), connect(Process(Disk()), "/db")
    first.execute("BEGIN EXCLUSIVE")
    second.execute("BEGIN EXCLUSIVE")


def test_wal_without_exclusive_locking_is_refused_with_the_remedy() -> None:
    connection = connect(Process(Disk()), "/db")
    with pytest.raises(UnsupportedOperation, match="PRAGMA locking_mode=EXCLUSIVE before"):
        connection.execute("PRAGMA journal_mode=WAL")


def test_a_wal_database_is_not_opened_without_exclusive_locking() -> None:
    process = Process(Disk())
    first = connect(process, "/db")
    first.pragma("locking_mode", "exclusive")
    first.pragma("journal_mode", "wal")
    first.execute("CREATE TABLE t (a)")
    first.close()
    second = connect(process, "/db")
    with pytest.raises(UnsupportedOperation, match="PRAGMA locking_mode=EXCLUSIVE before"):
        second.execute("SELECT * FROM t")
    second.execute("PRAGMA locking_mode=EXCLUSIVE")
    assert outcome(second, "SELECT * FROM t") == []
