"""A world boots one host after the other, and a host that ended is poisoned."""

from __future__ import annotations

from typing import Any

import pytest

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices, SeededChoices
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError, PowerOff
from sim.world import World
from system.ports import FileKind, OpenMode


def _world() -> World[Any]:
    return World(simulated_host, PlainChoices())


def test_a_kill_keeps_what_no_barrier_covered() -> None:
    world = _world()
    world.boot().files.mkdir("agents")
    world.kill()
    assert world.boot().files.kind("agents") is FileKind.DIRECTORY


def test_a_stop_leaves_what_a_kill_leaves_and_nothing_of_it_pending() -> None:
    left = []
    for end in (World.kill, World.stop):
        world = _world()
        files = world.boot().files
        files.mkdir("durable")
        files.sync_dir("")
        files.mkdir("volatile")
        end(world)
        left.append(world.image)
        assert world.boot().files.listdir("") == ["durable", "volatile"]
    killed, stopped = left
    assert killed.digest() == stopped.digest()
    assert (killed.next_inode, killed.unsynced != ()) == (stopped.next_inode, True)
    assert (stopped.platter, stopped.unsynced) == (stopped.cached, ())


def test_a_power_cut_keeps_what_it_is_told_to_keep() -> None:
    world = _world()
    files = world.boot().files
    files.mkdir("durable")
    files.sync_dir("")
    files.mkdir("volatile")
    lost = tuple(range(len(world.disk.unsynced().micros)))
    world.cut_power(SurvivorSet(lost))
    assert world.boot().files.listdir("") == ["durable"]


def test_a_host_that_ended_changes_nothing_any_more() -> None:
    world = _world()
    host = world.boot()
    world.kill()
    with pytest.raises(PowerOff):
        host.files.mkdir("too late")
    assert world.boot().files.listdir("") == []


def test_two_hosts_are_never_alive_on_one_disk() -> None:
    world = _world()
    world.boot()
    with pytest.raises(HarnessError, match="two hosts on one disk"):
        world.boot()


def test_between_two_lifetimes_there_is_no_disk() -> None:
    world = _world()
    assert not world.alive
    with pytest.raises(HarnessError, match="no host is alive"):
        _ = world.disk


def test_an_unknown_persistence_model_is_refused_by_name() -> None:
    with pytest.raises(HarnessError, match="ext5"):
        World(simulated_host, PlainChoices(), "ext5")


def test_a_database_survives_a_kill_and_its_connection_does_not() -> None:
    world = _world()
    connection = world.boot().database.open("state.db")
    connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (7)").fetchall()
    world.kill()
    again = world.boot().database.open("state.db")
    assert again.execute("SELECT x FROM t").fetchall() == [(7,)]
    world.kill()


def test_time_goes_on_over_a_crash_and_the_logical_sequence_begins_again() -> None:
    world = _world()
    clock = world.boot().clock
    first, at = clock.sequence(), clock.monotonic_ns()
    world.kill()
    clock = world.boot().clock
    assert clock.sequence() == first == 1
    assert clock.monotonic_ns() > at


def test_ids_repeat_from_run_to_run_and_not_within_one() -> None:
    first, again, other = (
        World(simulated_host, SeededChoices(seed)).boot().ids for seed in (1, 1, 2)
    )
    ids = [first.uuid_hex() for _ in range(3)]
    assert ids == [again.uuid_hex() for _ in range(3)]
    assert other.uuid_hex() not in ids
    assert len({*ids}) == 3
    assert all(len(identity) == 32 and identity[12] == "4" for identity in ids)
    assert len(first.random_hex(8)) == 8


def test_the_file_port_does_what_its_calls_say() -> None:
    files = _world().boot().files
    with pytest.raises(FileNotFoundError):
        files.open("f", OpenMode.READ)
    file = files.open("f", OpenMode.CREATE)
    file.lock()
    assert file.pwrite(b"abc", 0) == 3
    file.truncate(2)
    file.fsync()
    file.close()
    with pytest.raises(FileExistsError):
        files.open("f", OpenMode.CREATE)
    file = files.open("/f", OpenMode.APPEND)
    assert file.append(b"Z") == 1
    file.fdatasync()
    assert (file.size(), file.pread(9, 1)) == (3, b"bZ")
    file.close()
    files.replace("f", "g")
    assert (files.kind("f"), files.kind("g"), files.listdir("")) == (None, FileKind.FILE, ["g"])
    files.unlink("g")
    files.mkdir("d")
    files.rmdir("d")
    assert files.listdir("") == []
