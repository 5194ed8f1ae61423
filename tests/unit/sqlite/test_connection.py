"""Randomness, time, paths and descriptors of a connection come from the simulated machine."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import apsw
import pytest

from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.sqlite.connection import connect
from sim.sqlite.vfs import SimulatedVFS

RANDOM = "SELECT hex(randomblob(16))"


def test_random_numbers_follow_the_seed() -> None:
    def drawn(seed: int) -> object:
        return connect(Process(Disk()), "/db", seed=seed).execute(RANDOM).get

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_random_numbers_differ_from_one_opening_to_the_next() -> None:
    process = Process(Disk())
    drawn = [connect(process, "/db").execute(RANDOM).get for _ in range(3)]
    assert len(set(drawn)) == 3


def test_random_numbers_differ_from_one_lifetime_to_the_next() -> None:
    disk = Disk()
    first = connect(Process(disk), "/db")
    drawn = first.execute(RANDOM).get
    first.execute("CREATE TABLE t (a)")
    rebooted = Disk(disk.snapshot())
    assert connect(Process(rebooted), "/db").execute(RANDOM).get != drawn


def test_seeding_does_not_change_the_default_vfs() -> None:
    before = apsw.vfs_names()
    connection = connect(Process(Disk()), "/db")
    assert apsw.vfs_names()[0] == before[0]
    connection.close()


DIGEST = """
from sim.disk.disk import Disk
from sim.disk.calls.process import Process
from sim.sqlite.connection import connect
disk = Disk()
for mode in ("persist", "wal"):
    connection = connect(Process(disk), f"/{mode}")
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", mode)
    connection.execute("CREATE TABLE t (a, b, c)")
    connection.execute("INSERT INTO t VALUES (random(), datetime('now'), hex(randomblob(9)))")
print(disk.snapshot().digest())
"""


def test_two_processes_write_the_same_bytes() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_the_time_is_that_of_the_disk() -> None:
    disk = Disk(now_ns=count(1_000_000_000_000_000_000).__next__)
    connection = connect(Process(disk), "/db")
    times = connection.execute("SELECT datetime('now'), unixepoch('now')").get
    assert times == ("2001-09-09 01:46:40", 1_000_000_000)


def test_a_relative_path_starts_at_the_working_directory_of_the_process() -> None:
    process = Process(Disk())
    process.mkdir("/d")
    process.chdir("/d")
    connection = connect(process, "./x/../db")
    connection.execute("CREATE TABLE t (a)")
    assert connection.filename == "/d/db"
    assert process.listdir("/d") == ["db"]


def test_a_link_with_an_absolute_path_is_followed_from_the_root() -> None:
    process = Process(Disk())
    process.mkdir("/links")
    process.symlink("/db", "/links/db")
    connect(process, "/links/db").execute("CREATE TABLE t (a)")
    assert process.stat("/db").st_size > 0
    assert process.listdir("/links") == ["db"]


def test_a_file_of_one_byte_is_a_new_database_as_on_unix() -> None:
    process = Process(Disk())
    descriptor = process.open("/db", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"x")
    connection = connect(process, "/db")
    connection.execute("CREATE TABLE t (a)")
    assert connection.execute("SELECT count(*) FROM t").get == 0


def test_an_empty_file_does_not_exist_for_sqlite_and_a_directory_does() -> None:
    process = Process(Disk())
    process.close(process.open("/empty", os.O_CREAT | os.O_WRONLY))
    process.mkdir("/directory")
    vfs = SimulatedVFS(process)
    names = ("/empty", "/directory", "/missing")
    found = [vfs.xAccess(name, apsw.SQLITE_ACCESS_EXISTS) for name in names]
    assert found == [False, True, False]


def test_a_cycle_of_links_is_an_error() -> None:
    process = Process(Disk())
    process.symlink("b", "/a")
    process.symlink("a", "/b")
    with pytest.raises(apsw.CantOpenError, match="Too many levels"):
        connect(process, "/a")


def test_a_program_may_open_connections_by_the_name_of_the_vfs() -> None:
    process = Process(Disk())
    vfs = SimulatedVFS(process)
    first = apsw.Connection("/db", vfs=vfs.name)
    second = apsw.Connection("/db", vfs=vfs.name)
    first.execute("CREATE TABLE t (a)")
    assert second.execute("SELECT count(*) FROM t").get == 0
    assert process.listdir("/") == ["db"]


def test_an_unlinked_database_can_be_read_until_it_is_closed() -> None:
    process = Process(Disk())
    connection = connect(process, "/db")
    connection.execute("CREATE TABLE t (a)")
    process.unlink("/db")
    assert connection.execute("SELECT count(*) FROM t").get == 0
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("INSERT INTO t VALUES (1)")


def test_a_backup_onto_the_disk_is_complete() -> None:
    source = apsw.Connection(":memory:")
    source.execute("CREATE TABLE t (a)")
    source.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(500)])
    target = connect(Process(Disk()), "/db")
    with target.backup("main", source, "main") as backup:
        backup.step()
    assert target.execute("SELECT count(*), max(a) FROM t").get == (500, 499)


def test_every_descriptor_is_closed() -> None:
    process = Process(Disk(), descriptor_limit=3)
    for _ in range(20):
        connection = connect(process, "/db")
        connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.close()
