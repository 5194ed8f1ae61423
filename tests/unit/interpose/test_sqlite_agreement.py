"""``sqlite3`` of the standard library gives the same answers on the disk as in a real directory."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

Program = Callable[[str], list[object]]

STATEMENTS = (
    *(f"PRAGMA journal_mode={mode}" for mode in ("wal", "wal", "wal", "delete", "persist", "off")),
    *(f"PRAGMA wal_checkpoint({mode})" for mode in ("passive", "restart", "truncate")),
    *(f"PRAGMA locking_mode={mode}" for mode in ("exclusive", "normal")),
    "CREATE TABLE IF NOT EXISTS t (x)",
    *["INSERT INTO t VALUES (zeroblob(10))"] * 3,
    """INSERT INTO t WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 60)
       SELECT zeroblob(500) FROM n""",
    *["SELECT count(*), sum(length(x)) FROM t"] * 3,
    "BEGIN",
    "BEGIN IMMEDIATE",
    *["COMMIT"] * 2,
    "ROLLBACK",
    "VACUUM",
    "DELETE FROM t",
    "PRAGMA integrity_check",
    "PRAGMA cache_size=5",
)


def _sizes(folder: str) -> list[tuple[str, int]]:
    """Return names and sizes of the files; the disk has no file for the index of a WAL."""
    names = sorted(name for name in os.listdir(folder) if not name.endswith("-shm"))
    return [(name, os.path.getsize(f"{folder}/{name}")) for name in names]


def _agree(program: Program, real: Path) -> None:
    expected = program(str(real))
    with interposed(Process(Disk()), sandbox=False):
        found = program("/disk")
    assert found == expected


def _answer(connection: sqlite3.Connection, statement: str) -> object:
    try:
        return connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        return str(error)


def _wal_of(path: str, rows: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("CREATE TABLE t (x)")
        with connection:
            connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * rows)


def _summary(connection: sqlite3.Connection) -> list[object]:
    return [
        _answer(connection, statement)
        for statement in ("SELECT count(*) FROM t", "PRAGMA page_count", "PRAGMA integrity_check")
    ]


def test_a_database_that_leaves_wal_grows_and_enters_it_again(tmp_path: Path) -> None:
    def program(folder: str) -> list[object]:
        path = f"{folder}/a.db"
        _wal_of(path, 1)
        with closing(sqlite3.connect(path)) as connection:
            answers = [_answer(connection, "PRAGMA journal_mode=delete")]
            with connection:
                connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 200)
            answers.append(_answer(connection, "PRAGMA journal_mode=wal"))
            with connection:
                connection.execute("INSERT INTO t VALUES ('last')")
            answers += _summary(connection)
        with closing(sqlite3.connect(path)) as connection:
            return answers + _summary(connection)

    _agree(program, tmp_path)


def test_a_larger_backup_is_copied_over_a_closed_database(tmp_path: Path) -> None:
    def program(folder: str) -> list[object]:
        _wal_of(f"{folder}/backup.db", 200)
        _wal_of(f"{folder}/a.db", 1)
        shutil.copyfile(f"{folder}/backup.db", f"{folder}/a.db")
        with closing(sqlite3.connect(f"{folder}/a.db")) as connection:
            return _summary(connection)

    _agree(program, tmp_path)


def test_the_index_of_a_wal_lasts_while_one_connection_uses_it(tmp_path: Path) -> None:
    def program(folder: str) -> list[object]:
        path = f"{folder}/a.db"
        _wal_of(path, 1)
        with closing(sqlite3.connect(path)) as first:
            answers = _summary(first)
            with closing(sqlite3.connect(path)) as second, second:
                second.execute("INSERT INTO t VALUES ('second')")
            with first:
                first.execute("INSERT INTO t VALUES ('first')")
            return [*answers, *_summary(first), *_sizes(folder)]

    _agree(program, tmp_path)


def _random_program(seed: int) -> Program:
    def program(folder: str) -> list[object]:
        random, connections, answers = Random(seed), list[sqlite3.Connection](), list[object]()
        for _ in range(60):
            step = random.randrange(12)
            if not connections or (step == 0 and len(connections) < 3):
                opened = sqlite3.connect(f"{folder}/a.db", timeout=0, isolation_level=None)
                connections.append(opened)
            elif step == 1:
                connections.pop(random.randrange(len(connections))).close()
            elif step == 2:
                answers.append(_sizes(folder))
            else:
                statement = random.choice(STATEMENTS)
                answers += [statement, _answer(random.choice(connections), statement)]
        for connection in connections:
            connection.close()
        return [*answers, _sizes(folder)]

    return program


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 80, 84, 90, 118, 380, 390])
def test_random_programs_agree(tmp_path: Path, seed: int) -> None:
    _agree(_random_program(seed), tmp_path)
