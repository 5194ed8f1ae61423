"""A world boots one lifetime after the other, and the process of an ended one is dead."""

from __future__ import annotations

from uuid import RFC_4122, UUID

import pytest

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from sim.choices import PlainChoices, SeededChoices
from sim.disk.calls.process import Process
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError, PowerOff
from sim.loop.clock import EPOCH_NS
from sim.sqlite.connection import abandon, connect
from sim.world import Boot, World

SECOND_NS = 1_000_000_000


def _world() -> World[Boot]:
    return World(lambda boot: boot, PlainChoices())


def _process(world: World[Boot]) -> Process:
    return world.boot().process


def _make_directories(process: Process) -> None:
    """Make ``/durable``, with a barrier, and ``/volatile``, without one."""
    process.mkdir("/durable")
    process.sync()
    process.mkdir("/volatile")


def test_a_schedule_that_is_set_in_a_lifetime_decides_from_then_on() -> None:
    world = _world()
    world.boot()
    world.schedule = SeededChoices(1)
    assert world.loop.choices is world.schedule
    world.kill()
    assert world.boot().loop.choices is world.schedule


def test_a_kill_keeps_unsynced_operations() -> None:
    world = _world()
    _process(world).mkdir("/d")
    world.kill()
    assert _process(world).listdir("/") == ["d"]


def test_a_stop_leaves_the_files_of_a_kill_with_nothing_unsynced() -> None:
    images = []
    for end in (World.kill, World.stop):
        world = _world()
        _make_directories(_process(world))
        end(world)
        images.append(world.image)
        assert sorted(_process(world).listdir("/")) == ["durable", "volatile"]
    killed, stopped = images
    assert killed.digest() == stopped.digest()
    assert (killed.next_inode, killed.unsynced != ()) == (stopped.next_inode, True)
    assert (stopped.platter, stopped.unsynced) == (stopped.cached, ())


def test_a_power_cut_leaves_the_durable_operations_and_the_survivors() -> None:
    world = _world()
    _make_directories(_process(world))
    world.cut_power(SurvivorSet(lost=tuple(range(len(world.disk.unsynced().micros)))))
    assert _process(world).listdir("/") == ["durable"]


def test_an_ended_lifetime_changes_nothing_any_more() -> None:
    world = _world()
    process = _process(world)
    world.kill()
    with pytest.raises(PowerOff):
        process.mkdir("/late")
    assert _process(world).listdir("/") == []


def test_a_live_world_cannot_be_booted_again() -> None:
    world = _world()
    world.boot()
    with pytest.raises(HarnessError, match="two hosts on one disk"):
        world.boot()


@pytest.mark.parametrize("part", ["disk", "process", "loop"])
def test_a_world_without_a_lifetime_has_no_disk_process_or_loop(part: str) -> None:
    world = _world()
    for _ in range(2):
        with pytest.raises(HarnessError, match="no host is alive"):
            getattr(world, part)
        world.boot()
        assert getattr(world, part) is not None
        world.kill()


def test_a_world_is_alive_from_boot_to_end() -> None:
    world = _world()
    alive = [world.alive]
    world.boot()
    alive.append(world.alive)
    world.kill()
    alive.append(world.alive)
    assert alive == [False, True, False]


def test_an_unknown_persistence_model_is_refused_by_name() -> None:
    with pytest.raises(HarnessError, match="ext5"):
        World(lambda boot: boot, PlainChoices(), "ext5")


def test_a_world_returns_the_host_that_was_made_from_the_boot() -> None:
    boots = list[Boot]()

    def make_host(boot: Boot) -> str:
        boots.append(boot)
        return f"host {len(boots)}"

    world = World(make_host, PlainChoices())
    assert world.boot() == "host 1"
    assert boots[0].process is world.process
    world.kill()
    assert (world.boot(), world.boots) == ("host 2", 2)
    assert boots[0].loop is not boots[1].loop
    assert boots[0].clock is boots[1].clock is world.clock


def test_functions_registered_for_the_end_are_called_once_the_last_one_first() -> None:
    world, calls = _world(), list[str]()

    def record(name: str) -> None:
        calls.append(f"{name} {world.disk.off}")

    boot = world.boot()
    boot.on_end(lambda: record("first"))
    boot.on_end(lambda: record("second"))
    world.kill()
    assert calls == ["second True", "first True"]
    world.boot()
    world.kill()
    assert len(calls) == 2


def test_a_database_survives_a_kill_and_its_connection_does_not() -> None:
    world = _world()
    boot = world.boot()
    connection = connect(boot.process, "/state.db")
    boot.on_end(lambda: abandon(connection))
    connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (7)").fetchall()
    world.kill()
    again = connect(_process(world), "/state.db")
    assert again.execute("SELECT x FROM t").fetchall() == [(7,)]
    again.close()
    world.kill()


def test_time_goes_on_over_a_crash() -> None:
    world = _world()
    at = world.boot().clock.monotonic_ns()
    world.kill()
    assert world.boot().clock.monotonic_ns() > at


def test_a_fault_plan_steps_the_clock_of_the_program_and_of_its_files() -> None:
    world = _world()
    boot = world.boot()
    FaultInjector(FaultPlan.parse("clock * #2 back:90s")).install(world.disk, world.clock)
    times_ns = [boot.clock.wall_ns()]
    boot.process.mkdir("/d")
    times_ns += [boot.process.stat("/d").st_mtime_ns, boot.clock.wall_ns()]
    seconds = [(time_ns - EPOCH_NS) // SECOND_NS for time_ns in times_ns]
    assert seconds == [0, -90, -90]
    assert 0 < boot.clock.monotonic_ns() < SECOND_NS


def test_ids_repeat_from_run_to_run_and_are_unique_within_one() -> None:
    first, again, other = (
        World(lambda boot: boot, SeededChoices(seed)).boot().ids for seed in (1, 1, 2)
    )
    ids = [first.uuid_hex() for _ in range(3)]
    assert ids == [again.uuid_hex() for _ in range(3)]
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(4, RFC_4122)}
    assert other.uuid_hex() not in ids
    assert len({*ids}) == 3
    assert all(len(identity) == 32 and identity[12] == "4" for identity in ids)
    assert len(first.random_hex(8)) == 8
