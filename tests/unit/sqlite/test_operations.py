"""SQLite's operations on the disk are the system calls of its unix VFS, one by one.

The lists were taken from apsw 3.54 on Linux with ``strace -e openat,pwrite64,ftruncate,
fdatasync,unlink`` (and are the same calls; opening a directory is not an operation).
"""

from __future__ import annotations

import pytest

from sim.disk.cache.operation import Create, Operation, Resize, Sync, Unlink, Write
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import EXT4_JOURNAL
from sim.disk.disk import Disk
from sim.sqlite.connection import connect

JOURNALED = (
    "write /d/db-journal 512 at 0",
    "write /d/db-journal 4 at 512",
    "write /d/db-journal 4096 at 516",
    "write /d/db-journal 4 at 4612",
    "write /d/db-journal 4 at 4616",
    "write /d/db-journal 4096 at 4620",
    "write /d/db-journal 4 at 8716",
    "fdatasync /d/db-journal",
)
COMMITTED = (
    "write /d/db-journal 12 at 0",
    "fdatasync /d/db-journal",
    "write /d/db 4096 at 0",
    "write /d/db 4096 at 4096",
    "fdatasync /d/db",
)
EXPECTED = {
    "delete, full": (
        "create /d/db-journal", *JOURNALED, "fdatasync /d", *COMMITTED, "unlink /d/db-journal",
    ),
    "delete, extra": (
        "create /d/db-journal", *JOURNALED, "fdatasync /d", *COMMITTED,
        "unlink /d/db-journal", "fdatasync /d",
    ),
    "delete, off": (
        "create /d/db-journal", *JOURNALED[:-1], *COMMITTED[2:-1], "unlink /d/db-journal",
    ),
    "truncate, full": (
        *JOURNALED, "fdatasync /d", *COMMITTED,
        "truncate /d/db-journal to 0", "fdatasync /d/db-journal",
    ),
    "persist, full": (
        *JOURNALED, "fdatasync /d", *COMMITTED,
        "write /d/db-journal 28 at 0", "fdatasync /d/db-journal",
    ),
    "memory, full": COMMITTED[2:],
    "off, full": COMMITTED[2:],
}  # fmt: skip


def line(operation: Operation) -> str:
    """Write an operation as a system call."""
    match operation:
        case Create(path=path):
            return f"create {path}"
        case Write(path=path, offset=offset, data=data):
            return f"write {path} {len(data)} at {offset}"
        case Resize(path=path, size=size):
            return f"truncate {path} to {size}"
        case Sync(path=path, data_only=data_only):
            return f"{'fdatasync' if data_only else 'fsync'} {path}"
        case Unlink(path=path):
            return f"unlink {path}"
        case _:
            return repr(operation)


def process_on(disk: Disk) -> Process:
    """Return a process on ``disk``, which has a directory ``/d``."""
    process = Process(disk)
    process.mkdir("/d")
    return process


@pytest.mark.parametrize("settings", EXPECTED)
def test_a_commit_with_a_rollback_journal(settings: str) -> None:
    mode, synchronous = settings.split(", ")
    disk = Disk()
    connection = connect(process_on(disk), "/d/db")
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE t (a)")
    before = disk.operations
    connection.execute("INSERT INTO t VALUES (1)")
    assert tuple(line(operation) for operation in disk.journal[before:]) == EXPECTED[settings]


def test_commits_with_a_wal_and_the_checkpoint_at_the_end() -> None:
    disk = Disk()
    connection = connect(process_on(disk), "/d/db")
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", "wal")
    before = disk.operations
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert [line(operation) for operation in disk.journal[before:]] == [
        "create /d/db-wal",
        "write /d/db-wal 32 at 0",
        "fdatasync /d/db-wal",
        "fdatasync /d",
        "write /d/db-wal 24 at 32",
        "write /d/db-wal 4096 at 56",
        "write /d/db-wal 24 at 4152",
        "write /d/db-wal 4096 at 4176",
        "fdatasync /d/db-wal",
        "write /d/db-wal 24 at 8272",
        "write /d/db-wal 4096 at 8296",
        "fdatasync /d/db-wal",
        "fdatasync /d/db-wal",
        "write /d/db 4096 at 0",
        "write /d/db 4096 at 4096",
        "truncate /d/db to 8192",
        "fdatasync /d/db",
        "unlink /d/db-wal",
    ]


def test_on_a_device_that_orders_writes_the_journal_is_not_synced() -> None:
    disk = Disk(model=EXT4_JOURNAL)
    connection = connect(process_on(disk), "/d/db")
    connection.execute("CREATE TABLE t (a)")
    before = disk.operations
    connection.execute("INSERT INTO t VALUES (1)")
    syncs = [operation for operation in disk.journal[before:] if isinstance(operation, Sync)]
    assert [line(operation) for operation in syncs] == ["fdatasync /d/db"]


def test_an_aborted_transaction_changes_no_file() -> None:
    disk = Disk()
    connection = connect(process_on(disk), "/d/db")
    connection.execute("CREATE TABLE t (a)")
    before = disk.snapshot().files()
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("ROLLBACK")
    assert disk.snapshot().files() == before


def test_a_journal_has_the_permissions_of_its_database() -> None:
    process = process_on(Disk())
    connection = connect(process, "/d/db")
    connection.execute("CREATE TABLE t (a)")
    process.chmod("/d/db", 0o640)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (1)")
    assert process.stat("/d/db-journal").st_mode & 0o777 == 0o640
