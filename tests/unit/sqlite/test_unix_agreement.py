"""The simulated VFS gives the same answers and the same bytes as SQLite's own unix VFS."""

from __future__ import annotations

import os
from ctypes import addressof, c_int
from pathlib import Path

import apsw
import pytest

from tests.sample import in_the_gate
from tests.unit.sqlite.arms import Arm, both_arms, opening, outcome

MODES = ("delete", "truncate", "persist", "memory", "off")

STATEMENTS = (
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
    "CREATE INDEX i ON t (b)",
    "INSERT INTO t (b) VALUES ('one'), ('two'), ('three')",
    """INSERT INTO t (b) WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 40)
       SELECT printf('%0700d', v) FROM n""",
    "BEGIN",
    "UPDATE t SET b = b || '!' WHERE a % 3 = 0",
    "SAVEPOINT one",
    "DELETE FROM t WHERE a % 2 = 0",
    "ROLLBACK TO one",
    "DELETE FROM t WHERE a % 5 = 0",
    "COMMIT",
    "INSERT INTO t (a) VALUES (1)",
    "SELECT a, length(b) FROM t ORDER BY b",
    "PRAGMA integrity_check",
    "VACUUM",
    "DROP INDEX i",
    "DELETE FROM t WHERE a > 3",
    "PRAGMA page_count",
    "PRAGMA freelist_count",
    "VACUUM",
    "PRAGMA page_count",
    "PRAGMA integrity_check",
)
ROLLED_BACK = ("BEGIN", "DELETE FROM t", "ROLLBACK", "SELECT count(*) FROM t")


def shapes(arm: Arm) -> dict[str, int | bytes]:
    """Return the database's bytes, and the sizes of the other files, which contain nonces."""
    return {
        name: content if name == "db" else len(content) for name, content in arm.files().items()
    }


def program(arm: Arm, mode: str, locking: str, page_bytes: int) -> list[object]:
    """Run the statements; return each with its answer and the files after it."""
    connection = arm.open("db")
    setup = (
        f"PRAGMA page_size={page_bytes}",
        f"PRAGMA locking_mode={locking}",
        f"PRAGMA journal_mode={mode}",
        "PRAGMA cache_size=4",
    )
    # Without a journal a rollback leaves the database undefined.
    statements = (*setup, *STATEMENTS, *(ROLLED_BACK if mode != "off" else ()))
    answers: list[object] = []
    for statement in statements:
        answers += [statement, outcome(connection, statement), shapes(arm)]
    connection.close()
    return [*answers, shapes(arm)]


@pytest.mark.parametrize("page_bytes", in_the_gate([512, 4096], lambda size: size == 512))
@pytest.mark.parametrize("locking", ["normal", "exclusive"])
@pytest.mark.parametrize("mode", MODES)
def test_a_program_gets_the_same_answers_and_leaves_the_same_bytes(
    tmp_path: Path, mode: str, locking: str, page_bytes: int
) -> None:
    unix, simulated = both_arms(tmp_path)
    assert program(simulated, mode, locking, page_bytes) == program(unix, mode, locking, page_bytes)


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_wal_in_exclusive_mode_agrees(tmp_path: Path, page_bytes: int) -> None:
    unix, simulated = both_arms(tmp_path)
    assert program(simulated, "wal", "exclusive", page_bytes) == program(
        unix, "wal", "exclusive", page_bytes
    )


def test_a_wal_that_was_not_checkpointed_is_recovered_alike(tmp_path: Path) -> None:
    def crash_and_read(arm: Arm) -> object:
        first = arm.open("db")
        for statement in ("PRAGMA locking_mode=exclusive", "PRAGMA journal_mode=wal", *STATEMENTS):
            outcome(first, statement)
        first.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        first.close()
        left = shapes(arm)
        second = arm.open("db")
        outcome(second, "PRAGMA locking_mode=exclusive")
        return (
            left,
            outcome(second, "SELECT a, length(b) FROM t"),
            outcome(second, "PRAGMA wal_checkpoint(TRUNCATE)"),
        )

    unix, simulated = both_arms(tmp_path)
    assert crash_and_read(simulated) == crash_and_read(unix)


@pytest.mark.parametrize(
    "flags",
    [
        apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
        apsw.SQLITE_OPEN_READWRITE,
        apsw.SQLITE_OPEN_READONLY,
    ],
    ids=["create", "write", "read"],
)
@pytest.mark.parametrize("name", ["new", "old", "directory", "nowhere/db", "old/db", "link", "."])
def test_opening_succeeds_or_fails_alike(tmp_path: Path, name: str, flags: int) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        arm.mkdir("directory")
        old = arm.open("old")
        outcome(old, "CREATE TABLE t (a)")
        old.close()
        arm.symlink("directory/linked", "link")
        answers.append([*opening(arm, name, flags), sorted(arm.files())])
    assert answers[0] == answers[1]


def test_a_journal_lies_beside_the_file_and_not_beside_a_link_to_it(tmp_path: Path) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        arm.mkdir("directory")
        arm.symlink("directory", "there")
        arm.symlink("there/../db", "link")
        connection = arm.open("link")
        outcome(connection, "CREATE TABLE t (a)")
        outcome(connection, "BEGIN IMMEDIATE")
        outcome(connection, "INSERT INTO t VALUES (1)")
        answers.append((connection.filename == arm.path("db"), sorted(arm.files())))
        connection.close()
    assert answers == [(True, ["db", "db-journal"])] * 2


def test_a_transaction_over_two_databases_agrees(tmp_path: Path) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        connection = arm.open("db")
        other = arm.path("other")
        outcomes = [
            outcome(connection, statement)
            for statement in (
                f"ATTACH '{other}' AS other",
                "CREATE TABLE t (a)",
                "CREATE TABLE other.u (a)",
                "BEGIN",
                "INSERT INTO t VALUES (1)",
                "INSERT INTO other.u VALUES (2)",
                "COMMIT",
                "SELECT * FROM t, u",
            )
        ]
        connection.close()
        answers.append((outcomes, arm.files()))
    assert answers[0] == answers[1]


def test_temporary_files_hold_their_data_and_are_removed(tmp_path: Path) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        connection = arm.open("db")
        outcomes = [
            outcome(connection, statement)
            for statement in (
                "PRAGMA temp_store=file",
                "PRAGMA temp.cache_size=2",
                "PRAGMA cache_size=2",
                "CREATE TEMP TABLE big (a, b)",
                """INSERT INTO big WITH RECURSIVE n(v) AS
                   (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 300)
                   SELECT v, zeroblob(500) FROM n""",
                "CREATE INDEX temp.i ON big (b, a)",
                "SELECT count(*), sum(a) FROM (SELECT a FROM big ORDER BY b DESC, a DESC)",
                "PRAGMA temp.integrity_check",
            )
        ]
        connection.close()
        answers.append((outcomes, sorted(arm.files())))
    assert answers[0] == answers[1]


def test_file_controls_answer_alike(tmp_path: Path) -> None:
    answers = []
    for arm in both_arms(tmp_path):
        connection = arm.open("db")
        outcome(connection, "CREATE TABLE t (a)")
        outcomes: list[object] = []
        for control in (
            apsw.SQLITE_FCNTL_PERSIST_WAL,
            apsw.SQLITE_FCNTL_POWERSAFE_OVERWRITE,
        ):
            outcomes += [_switch(connection, control, wanted) for wanted in (-1, 0, -1, 1, -1)]
        outcome(connection, "BEGIN EXCLUSIVE")
        locked = (apsw.SQLITE_FCNTL_LOCKSTATE, apsw.SQLITE_FCNTL_HAS_MOVED)
        outcomes += [_switch(connection, control, -1) for control in locked]
        connection.close()
        answers.append(outcomes)
    assert answers[0] == answers[1]


def _switch(connection: apsw.Connection, control: int, value: int) -> tuple[bool, int]:
    argument = c_int(value)
    handled = connection.file_control("main", control, addressof(argument))
    return handled, argument.value


def test_a_moved_database_is_noticed_alike(tmp_path: Path) -> None:
    unix, simulated = both_arms(tmp_path)
    answers = []
    for arm, rename in ((unix, os.rename), (simulated, simulated.process.rename)):
        connection = arm.open("db")
        outcome(connection, "CREATE TABLE t (a)")
        rename(arm.path("db"), arm.path("moved"))
        answers.append(
            (
                _switch(connection, apsw.SQLITE_FCNTL_HAS_MOVED, -1),
                outcome(connection, "INSERT INTO t VALUES (1)"),
            )
        )
        connection.close()
    assert answers[0] == answers[1]
