"""A crash inside SQLite is raised to the program, and nothing happens after it.

In the gate, a sample of the operations of each program is crashed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import apsw
import pytest

from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.sqlite.connection import abandon, connect
from sim.sqlite.vfs import SimulatedVFS
from tests.sample import Sample

Program = Callable[[apsw.Connection], None]

BIG = "x" * 10_000


class CrashAt:
    """An interposer that crashes at one operation; ``off`` turns the disk off as well."""

    def __init__(self, disk: Disk, number: int, *, before: bool, off: bool) -> None:
        self.disk = disk
        self.number = number
        self.is_before = before
        self.is_off = off
        self.fired = False
        disk.interposer = self

    def _crash(self, number: int) -> None:
        if number == self.number:
            self.fired = True
            if self.is_off:
                self.disk.power_off()
            raise SimulatedCrash(f"operation {number}")

    def before(self, operation: Operation, number: int) -> Operation:
        if self.is_before:
            self._crash(number)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        if not self.is_before:
            self._crash(number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data


def one_by_one(connection: apsw.Connection) -> None:
    for _ in range(3):
        connection.execute("INSERT INTO t VALUES (?)", ("x",))


def in_blocks(connection: apsw.Connection) -> None:
    for _ in range(2):
        with connection:
            connection.execute("INSERT INTO t VALUES (?)", (BIG,))
            connection.execute("INSERT INTO t VALUES (?)", (BIG,))


def in_nested_blocks(connection: apsw.Connection) -> None:
    cursor = connection.cursor()
    with connection:
        for _ in range(2):
            with connection:
                cursor.execute("INSERT INTO t VALUES (?)", (BIG,))
                cursor.execute("INSERT INTO t VALUES (?)", (BIG,))


def many_at_once(connection: apsw.Connection) -> None:
    connection.executemany("INSERT INTO t VALUES (?)", [(BIG,)] * 2)


def in_one_string(connection: apsw.Connection) -> None:
    list(connection.execute("BEGIN; INSERT INTO t VALUES (zeroblob(20000)); COMMIT; SELECT 1"))


PROGRAMS = (one_by_one, in_blocks, in_nested_blocks, many_at_once, in_one_string)


def crashed(disk: Disk, mode: str, locking: str, program: Program) -> apsw.Connection | None:
    """Run a program until its crash; return its connection, if it was opened."""
    connection = None
    try:
        connection = connect(Process(disk), "/db")
        connection.pragma("locking_mode", locking)
        connection.pragma("journal_mode", mode)
        connection.pragma("synchronous", "extra")
        connection.pragma("cache_size", 2)
        connection.execute("CREATE TABLE t (a)")
        program(connection)
        connection.close()
    except SimulatedCrash:
        return connection
    raise AssertionError("nothing crashed")


def count_of_operations(mode: str, locking: str, program: Program) -> int:
    disk = Disk()
    CrashAt(disk, 0, before=True, off=True)
    with pytest.raises(AssertionError, match="nothing crashed"):
        crashed(disk, mode, locking, program)
    return disk.operations


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Fail on any unraisable exception."""
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    yield raised
    assert raised == []


@pytest.mark.usefixtures("unraisable")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("locking", ["normal", "exclusive"])
@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "memory", "off", "wal"])
def test_a_crash_is_raised_unchanged_and_nothing_happens_after_it(
    mode: str, locking: str, program: Program, sample: Sample
) -> None:
    if mode == "wal" and locking == "normal":
        pytest.skip("WAL has no shared memory here")
    total = count_of_operations(mode, locking, program)
    for number in sample(range(1, total + 1), 8):
        for before, off in ((True, True), (False, False)):
            disk = Disk()
            crash = CrashAt(disk, number, before=before, off=off)
            connection = crashed(disk, mode, locking, program)
            assert crash.fired
            left, done = disk.snapshot().digest(), len(disk.journal)
            if connection is not None:
                use_after_crash(connection)
                abandon(connection)
            assert (disk.snapshot().digest(), len(disk.journal)) == (left, done)


def use_after_crash(connection: apsw.Connection) -> None:
    for statement in ("INSERT INTO sqlite_schema VALUES (1)", "BEGIN IMMEDIATE", "COMMIT"):
        # A connection that was closed before the crash raises ConnectionClosedError.
        with pytest.raises((PowerOff, apsw.Error)):
            connection.execute(statement)
    with pytest.raises((PowerOff, apsw.ConnectionClosedError)), connection:
        pass


@pytest.mark.usefixtures("unraisable")
@pytest.mark.parametrize("end", ["close", "drop"])
def test_the_connection_of_a_crashed_process_may_be_closed_or_dropped(end: str) -> None:
    total = count_of_operations("delete", "normal", in_blocks)
    for number in range(1, total + 1):
        disk = Disk()
        CrashAt(disk, number, before=True, off=True)
        connection = crashed(disk, "delete", "normal", in_blocks)
        left = disk.snapshot().digest()
        if end == "close" and connection is not None:
            connection.close()
        del connection
        assert disk.snapshot().digest() == left


@pytest.mark.usefixtures("unraisable")
def test_a_crash_in_other_code_stops_sqlite_too() -> None:
    disk = Disk()
    connection = connect(Process(disk), "/db")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    disk.power_off()
    for statement in ("INSERT INTO t VALUES (2)", "COMMIT", "SELECT * FROM t", "ROLLBACK"):
        with pytest.raises(PowerOff):
            connection.execute(statement)
    connection.close()


@pytest.mark.usefixtures("unraisable")
def test_a_transaction_block_does_not_hide_a_crash_in_other_code() -> None:
    disk = Disk()
    connection = connect(Process(disk), "/db")
    connection.execute("CREATE TABLE t (a)")

    def block() -> None:
        with connection:
            connection.execute("INSERT INTO t VALUES (1)")
            disk.power_off()
            raise SimulatedCrash("in another file")

    with pytest.raises(SimulatedCrash, match="in another file"):
        block()


@pytest.mark.usefixtures("unraisable")
def test_a_dead_process_writes_nothing_although_its_disk_is_on() -> None:
    disk = Disk()
    dead, other = Process(disk), Process(disk)
    connection = connect(dead, "/db")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    dead.poison()
    before = len(disk.journal)
    with pytest.raises(PowerOff):
        connection.execute("COMMIT")
    connection.close(True)
    assert len(disk.journal) == before
    assert connect(other, "/db").execute("SELECT count(*) FROM t").get == 0


def test_a_connection_made_by_the_program_itself_starts_nothing_after_a_crash() -> None:
    disk = Disk()
    vfs = SimulatedVFS(Process(disk))
    connection = apsw.Connection("/db", vfs=vfs.name)
    connection.execute("CREATE TABLE t (a)")
    disk.power_off()
    with pytest.raises(PowerOff):
        connection.execute("SELECT * FROM t")


def test_closing_a_wal_after_a_crash_attempts_no_checkpoint() -> None:
    disk = Disk()
    connection = connect(Process(disk), "/db")
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (a)")
    disk.power_off()
    connection.close()
    assert "/db-wal" in disk.snapshot().files()


@pytest.mark.usefixtures("unraisable")
def test_a_connection_in_a_transaction_may_be_garbage_collected() -> None:
    disk = Disk()
    cycle: list[object] = [connect(Process(disk), "/db")]
    connection = cycle[0]
    assert isinstance(connection, apsw.Connection)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    cycle.append(cycle)
    del connection, cycle
    gc.collect()
    assert list(disk.snapshot().files()) == ["/db"]


def test_abandoning_a_connection_does_not_change_the_disk() -> None:
    disk = Disk()
    connection = connect(Process(disk), "/db")
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (a)")
    before = len(disk.journal)
    abandon(connection)
    assert len(disk.journal) == before


def test_only_a_simulated_connection_can_be_abandoned() -> None:
    with pytest.raises(HarnessError, match=r"not opened with sim\.sqlite\.connect"):
        abandon(apsw.Connection(":memory:"))


def test_no_vfs_is_left_registered() -> None:
    gc.collect()
    before = apsw.vfs_names()
    for number in range(1, 30):
        disk = Disk()
        CrashAt(disk, number, before=False, off=True)
        connection = crashed(disk, "delete", "normal", in_blocks)
        if connection is not None and number % 2:
            abandon(connection)
        del connection
    gc.collect()
    assert apsw.vfs_names() == before
