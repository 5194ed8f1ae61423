"""A failing disk leads to the result codes of SQLite's unix VFS."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field

import apsw
import pytest

from sim.disk.cache.operation import (
    Create,
    Operation,
    Resize,
    Sync,
    SyncFailure,
    Unlink,
    Write,
)
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.sqlite.connection import connect
from tests.unit.sqlite.arms import outcome


@dataclass
class Faulty:
    """An interposer that refuses operations of one kind on one path, ``times`` times."""

    kind: type[Operation]
    path: str
    number: int
    times: int = 1 << 30
    fired: int = field(default=0, init=False)

    def before(self, operation: Operation, number: int) -> Operation:
        matches = isinstance(operation, self.kind) and operation.path == self.path
        if matches and self.fired < self.times:
            self.fired += 1
            raise OSError(self.number, os.strerror(self.number), self.path)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        pass

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data


class ShortTransfers(Faulty):
    """Every write transfers at most 100 bytes, every read at most 7."""

    def before(self, operation: Operation, number: int) -> Operation:
        if isinstance(operation, Write) and len(operation.data) > 100:
            self.fired += 1
            return operation._replace(data=operation.data[:100])
        return operation

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data[:7]


class BadReads(Faulty):
    """Reads of one path fail."""

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        if path == self.path and self.fired < self.times:
            self.fired += 1
            raise OSError(self.number, os.strerror(self.number), path)
        return data


def database(mode: str = "delete") -> tuple[Disk, apsw.Connection]:
    disk = Disk()
    connection = connect(Process(disk), "/db")
    if mode == "wal":
        connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", mode)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (zeroblob(9000))")
    return disk, connection


INSERT = "INSERT INTO t VALUES (1)"

FAILURES = [
    ("delete", Write, "/db", errno.EIO, "IOError", apsw.SQLITE_IOERR_WRITE),
    ("delete", Write, "/db", errno.ENOSPC, "FullError", apsw.SQLITE_FULL),
    ("delete", Write, "/db-journal", errno.EDQUOT, "IOError", apsw.SQLITE_IOERR_WRITE),
    ("delete", Sync, "/db-journal", errno.EIO, "IOError", apsw.SQLITE_IOERR_FSYNC),
    ("delete", Sync, "/db", errno.ENOSPC, "IOError", apsw.SQLITE_IOERR_FSYNC),
    ("delete", Create, "/db-journal", errno.EIO, "CantOpenError", apsw.SQLITE_CANTOPEN),
    ("delete", Unlink, "/db-journal", errno.EIO, "IOError", apsw.SQLITE_IOERR_DELETE),
    ("truncate", Resize, "/db-journal", errno.EIO, "IOError", apsw.SQLITE_IOERR_TRUNCATE),
    ("wal", Write, "/db-wal", errno.ENOSPC, "FullError", apsw.SQLITE_FULL),
    ("wal", Sync, "/db-wal", errno.EIO, "IOError", apsw.SQLITE_IOERR_FSYNC),
]


@pytest.mark.parametrize(("mode", "kind", "path", "number", "error", "code"), FAILURES)
def test_a_failing_operation_fails_the_statement(
    mode: str, kind: type[Operation], path: str, number: int, error: str, code: int
) -> None:
    disk, connection = database(mode)
    faults = disk.interposer = Faulty(kind, path, number)
    assert outcome(connection, INSERT) == (error, code & 0xFF, code)
    assert faults.fired
    disk.interposer = None


def test_the_errno_of_a_failure_is_available() -> None:
    disk, connection = database()
    disk.interposer = Faulty(Write, "/db", errno.EDQUOT)
    outcome(connection, INSERT)
    assert connection.system_errno == errno.EDQUOT


@pytest.mark.parametrize(("mode", "kind", "path", "number", "error", "code"), FAILURES)
def test_after_the_fault_the_database_is_intact(
    mode: str, kind: type[Operation], path: str, number: int, error: str, code: int
) -> None:
    disk, connection = database(mode)
    disk.interposer = Faulty(kind, path, number, times=1)
    outcome(connection, INSERT)
    disk.interposer = None
    connection.close()
    again = connect(Process(disk), "/db")
    again.pragma("locking_mode", "exclusive")
    assert outcome(again, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("kind", [Write, Create])
def test_interrupted_calls_are_repeated(kind: type[Operation]) -> None:
    disk, connection = database()
    faults = disk.interposer = Faulty(kind, "/db-journal", errno.EINTR, times=3)
    assert outcome(connection, INSERT) == []
    assert faults.fired == 3


def test_an_interrupted_truncation_is_repeated() -> None:
    disk, connection = database("truncate")
    faults = disk.interposer = Faulty(Resize, "/db-journal", errno.EINTR, times=2)
    assert outcome(connection, INSERT) == []
    assert faults.fired == 2


def test_interrupted_reads_are_repeated() -> None:
    disk, connection = database()
    faults = disk.interposer = BadReads(Write, "/db", errno.EINTR, times=3)
    connection.execute("PRAGMA cache_size=0")
    assert outcome(connection, "SELECT count(*) FROM t") == [(1,)]
    assert faults.fired == 3


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_short_writes_and_short_reads_are_continued(mode: str) -> None:
    disk, connection = database(mode)
    faults = disk.interposer = ShortTransfers(Write, "", 0)
    assert outcome(connection, INSERT) == []
    connection.close()
    again = connect(Process(disk), "/db")
    again.pragma("locking_mode", "exclusive")
    assert outcome(again, "SELECT count(*) FROM t") == [(2,)]
    assert outcome(again, "PRAGMA integrity_check") == [("ok",)]
    assert faults.fired > 10


@pytest.mark.parametrize(
    ("number", "error", "result", "code"),
    [
        (errno.EIO, "CorruptError", apsw.SQLITE_CORRUPT, apsw.SQLITE_IOERR_CORRUPTFS),
        (errno.EACCES, "IOError", apsw.SQLITE_IOERR, apsw.SQLITE_IOERR_READ),
    ],
)
def test_a_failing_read_fails_the_statement(
    number: int, error: str, result: int, code: int
) -> None:
    disk, first = database()
    first.close()
    connection = connect(Process(disk), "/db")
    disk.interposer = BadReads(Write, "/db", number)
    assert outcome(connection, "SELECT * FROM t") == (error, result, code)


def test_a_failing_directory_sync_fails_a_deletion_but_not_a_first_sync() -> None:
    disk, connection = database()
    connection.pragma("synchronous", "full")
    faults = disk.interposer = Faulty(Sync, "/", errno.EIO)
    assert outcome(connection, INSERT) == []
    assert faults.fired == 1
    connection.pragma("synchronous", "extra")
    code = apsw.SQLITE_IOERR_DIR_FSYNC
    assert outcome(connection, INSERT) == ("IOError", apsw.SQLITE_IOERR, code)


class FailsAsExt4(Faulty):
    """The sync of one path fails, and the kernel marks the pages clean."""

    def before(self, operation: Operation, number: int) -> Operation:
        if isinstance(operation, Sync) and operation.path == self.path and not self.fired:
            self.fired += 1
            return operation.failed(SyncFailure.EXT4)
        return operation


def test_a_sync_that_fails_as_on_ext4_fails_the_commit() -> None:
    disk, connection = database()
    disk.interposer = FailsAsExt4(Sync, "/db", errno.EIO)
    code = apsw.SQLITE_IOERR_FSYNC
    assert outcome(connection, INSERT) == ("IOError", apsw.SQLITE_IOERR, code)


def test_a_database_on_a_read_only_file_system_can_be_read() -> None:
    disk, first = database()
    first.close()
    disk.interposer = Faulty(Create, "/db-journal", errno.EROFS)
    connection = connect(Process(disk), "/db")
    assert outcome(connection, "SELECT count(*) FROM t") == [(1,)]
    assert outcome(connection, INSERT) == (
        "CantOpenError",
        apsw.SQLITE_CANTOPEN,
        apsw.SQLITE_CANTOPEN,
    )


def test_without_a_free_descriptor_a_database_can_be_read_and_not_written() -> None:
    disk, first = database()
    first.close()
    connection = connect(Process(disk, descriptor_limit=1), "/db")
    assert outcome(connection, "SELECT count(*) FROM t") == [(1,)]
    assert outcome(connection, INSERT) == (
        "CantOpenError",
        apsw.SQLITE_CANTOPEN,
        apsw.SQLITE_CANTOPEN,
    )


def test_an_unprivileged_process_reads_a_database_that_it_may_not_write() -> None:
    disk, first = database()
    first.close()
    connection = connect(Process(disk, uid=1000, gid=1000), "/db")
    assert connection.readonly("main")
    assert outcome(connection, "SELECT count(*) FROM t") == [(1,)]
    assert outcome(connection, INSERT) == (
        "ReadOnlyError",
        apsw.SQLITE_READONLY,
        apsw.SQLITE_READONLY,
    )


def test_an_unwritable_directory_is_reported_as_the_cause() -> None:
    disk, first = database()
    first.close()
    Process(disk).chmod("/db", 0o666)
    connection = connect(Process(disk, uid=1000, gid=1000), "/db")
    code = apsw.SQLITE_READONLY_DIRECTORY
    assert outcome(connection, INSERT) == ("ReadOnlyError", apsw.SQLITE_READONLY, code)


def test_a_database_that_cannot_be_made_is_not_a_journal_that_cannot_be_made() -> None:
    process = Process(Disk(), uid=1000, gid=1000)
    with pytest.raises(apsw.CantOpenError):
        connect(process, "/db").execute("CREATE TABLE t (a)")


@pytest.mark.parametrize(
    "faults",
    [
        Faulty(Write, "/db", errno.ENOSPC),
        Faulty(Write, "/db", errno.EIO),
        Faulty(Sync, "/db", errno.EIO),
    ],
    ids=["full", "unwritable", "unsynced"],
)
def test_a_commit_whose_checkpoint_fails_has_happened(faults: Faulty) -> None:
    disk, connection = database("wal")
    connection.pragma("cache_size", -16384)

    for _ in range(12):
        with connection:
            connection.execute("INSERT INTO t VALUES (zeroblob(400000))")
        disk.interposer = faults

    assert faults.fired
    disk.interposer = None
    assert connection.execute("SELECT count(*) FROM t WHERE length(a) = 400000").get == 12
