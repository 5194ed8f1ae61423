"""``sqlite3`` and ``dbm`` of the standard library on the disk."""

from __future__ import annotations

import dbm
import dbm.dumb
import os
import shelve
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.interpose import dbm_libraries
from powercut.interpose.interposed import interposed
from sim.disk.cache.operation import DropPages, FailedSync, Operation, Sync
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.sample import in_the_gate

FEW = Limits(states_per_point=16, samples=8, engine=Engine.BRUTE)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    assert tmp_path.exists()
    process = Process(Disk())
    with interposed(process, sandbox=False):
        yield process


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal", "memory", "off"])
def test_every_journal_mode_works(process: Process, mode: str) -> None:
    connection = sqlite3.connect("app.db")
    assert connection.execute(f"PRAGMA journal_mode={mode}").fetchone() == (mode,)
    with connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(b"x" * 100,)] * 100)
    other = sqlite3.connect("/disk/app.db")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (100,)
    assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    other.close()
    connection.close()
    assert "/disk/app.db" in process.disk.files()


def test_other_paths_are_those_of_the_machine(process: Process, tmp_path: Path) -> None:
    path = tmp_path / "real.db"
    for database in (path, ":memory:"):
        connection = sqlite3.connect(database)
        connection.execute("CREATE TABLE t (x)")
        connection.close()
    assert path.stat().st_size > 0
    assert process.disk.files() == {}


def test_a_database_is_attached_through_a_link_and_an_address(process: Process) -> None:
    os.mkdir("folder")
    os.symlink("folder", "link")
    connection = sqlite3.connect("file:link/a.db?mode=rwc", uri=True)
    connection.execute("ATTACH DATABASE 'link/b.db' AS b")
    connection.execute("CREATE TABLE b.t (x)")
    connection.close()
    assert sorted(os.listdir("folder")) == ["a.db", "b.db"]
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite3.connect("missing/a.db")


def test_two_connections_exclude_each_other(process: Process) -> None:
    first = sqlite3.connect("app.db", isolation_level=None)
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN IMMEDIATE")
    second = sqlite3.connect("app.db", isolation_level=None, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        second.execute("INSERT INTO t VALUES (1)")
    first.execute("COMMIT")
    second.execute("INSERT INTO t VALUES (1)")
    first.close()
    second.close()


class _Notes(sqlite3.Connection):
    """A connection with cursors of its own class."""

    def rows(self) -> sqlite3.Cursor:
        return self.cursor(_NotesCursor).execute("SELECT x FROM t")


class _NotesCursor(sqlite3.Cursor):
    pass


def _fail(rows: Callable[[], sqlite3.Cursor]) -> None:
    for (x,) in rows():
        raise ValueError(f"of the row {x}")


@pytest.mark.filterwarnings("ignore:Passing more than 1 positional:DeprecationWarning")
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_an_exception_leaves_a_loop_over_a_cursor(process: Process, mode: str) -> None:
    connection = sqlite3.connect("app.db")
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    connection.commit()
    with pytest.raises(ValueError, match="of the row 1"):
        _fail(lambda: connection.execute("SELECT x FROM t"))
    with pytest.raises(ValueError, match="of the row 1"):
        _fail(lambda: sqlite3.connect("app.db").execute("SELECT x FROM t"))
    with pytest.raises(ValueError, match="of the row 1"):
        _fail(lambda: sqlite3.connect("app.db", factory=_Notes).rows())
    with pytest.raises(ValueError, match="of the row 1"):
        _fail(lambda: sqlite3.connect("app.db", 5.0, 0, None, True, _Notes).rows())
    connection.execute("DELETE FROM t")
    connection.close()


def test_threads_share_a_wal(process: Process) -> None:
    connection = sqlite3.connect("app.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")

    def insert() -> None:
        own = sqlite3.connect("app.db", timeout=20)
        for number in range(5):
            with own:
                own.execute("INSERT INTO t VALUES (?)", (number,))
        own.close()

    threads = [threading.Thread(target=insert) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (15,)
    connection.close()


def test_a_connection_that_outlives_its_process_changes_nothing() -> None:
    process = Process(Disk())
    with interposed(process):
        connection = sqlite3.connect("app.db", isolation_level=None)
        connection.execute("CREATE TABLE t (x)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        process.poison()
    image = process.disk.snapshot()
    with interposed(Process(Disk(image))) as second:
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("COMMIT")
        connection.close()
        assert second.disk.operations == 0
        again = sqlite3.connect("app.db")
        assert again.execute("SELECT count(*) FROM t").fetchone() == (0,)
        again.close()


def _commits(journal: str, synchronous: str) -> Callable[[History], None]:
    def workload(ack: History) -> None:
        connection = sqlite3.connect("app.db")
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        with connection:
            connection.execute("CREATE TABLE t (x)")
        for number in range(2):
            with connection:
                connection.execute("INSERT INTO t VALUES (?)", (number,))
            ack(number)

    return workload


def _rows_are_kept(known: Known) -> None:
    connection = sqlite3.connect("app.db")
    count = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    rows = [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")] if count else []
    assert rows[: len(known.acknowledged)] == list(known.acknowledged)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("journal", "synchronous"),
    in_the_gate(
        [("wal", "full"), ("delete", "extra"), ("truncate", "full")], ("wal", "full").__eq__
    ),
)
def test_durable_settings_lose_nothing(journal: str, synchronous: str) -> None:
    found = explore(_commits(journal, synchronous), _rows_are_kept, "xfs", FEW)
    assert found.safe, found.failures[0].violation
    assert found.states > 50


@pytest.mark.parametrize(
    ("journal", "synchronous"),
    in_the_gate([("off", "full"), ("delete", "full"), ("wal", "normal")], ("wal", "normal").__ne__),
)
def test_other_settings_lose_a_commit_under_the_strongest_model(
    journal: str, synchronous: str
) -> None:
    assert not explore(_commits(journal, synchronous), _rows_are_kept, "scc", FEW).safe


def _vacuum(ack: History) -> None:
    connection = sqlite3.connect("app.db")
    connection.execute("CREATE TABLE t (x)")
    with connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(b"x" * 3000,)] * 5)
    connection.execute("DELETE FROM t WHERE rowid > 1")
    connection.commit()
    ack("deleted")
    connection.execute("VACUUM")
    connection.close()


def _is_intact(_process: Process, _known: Known) -> None:
    connection = sqlite3.connect("app.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_database_that_vacuum_makes_shorter_survives_on_btrfs() -> None:
    found = explore(_vacuum, _is_intact, "btrfs")
    assert found.safe, found.failures[0].violation
    assert found.exhaustive


def _without_time(operation: Operation) -> Operation:
    if isinstance(operation, Sync | FailedSync | DropPages):
        return operation
    return operation._replace(now_ns=0)


def test_a_run_repeats_itself_to_the_byte() -> None:
    first, second = (
        explore(_commits("wal", "full"), _rows_are_kept, "scc", FEW).workload.journal
        for _ in range(2)
    )
    assert [*map(_without_time, first)] == [*map(_without_time, second)]


def test_shelves_are_made_by_a_module_that_the_disk_can_carry(process: Process) -> None:
    assert vars(dbm)["_defaultmod"].__name__ in {"dbm.dumb", "dbm.sqlite3"}
    with shelve.open("shelf") as shelf:
        shelf["key"] = [1, 2]
    assert dbm.whichdb("shelf") in {"dbm.dumb", "dbm.sqlite3"}
    with dbm.dumb.open("dumb", "c") as database:
        database[b"a"] = b"b"
    with shelve.open("shelf") as shelf:
        assert shelf["key"] == [1, 2]


def test_no_process_of_a_check_imports_the_modules_of_dbm(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are imported before the first block; a failed import would be tried in each check."""

    def unwanted(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(dbm_libraries, "import_module", unwanted)
    monkeypatch.setitem(vars(dbm), "_modules", {})
    database = dbm_libraries.DefaultDatabase()
    database.enter()
    assert vars(dbm)["_modules"]
    database.leave()
    assert process.disk.files() == {}
