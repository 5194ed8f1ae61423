"""A crash in the middle of an await ends the lifetime; nothing of it runs in the next one."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from inspect import CORO_CLOSED, getcoroutinestate

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from sim.choices import SeededChoices
from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.loop.abandonment import MAX_CLOSES
from sim.world import Boot, World
from tests.unit.loop.loops import new_loop, new_world


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail on any warning, unraisable exception or output."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert capfd.readouterr() == ("", "")


def _crash_at(world: World[Boot], operation: int) -> None:
    disk = world.disk
    disk.interposer = CrashCounter(disk, operation, Phase.BEFORE)


@pytest.mark.parametrize("seed", range(10))
def test_after_a_crash_no_further_step_of_that_lifetime_runs(seed: int) -> None:
    world, log = new_world(SeededChoices(seed)), list[str]()
    boot = world.boot()
    _crash_at(world, 3)

    async def work(name: str) -> None:
        for number in range(4):
            boot.process.mkdir(f"/{name}{number}")
            log.append(f"{name}{number}")
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(work(name) for name in "abc"), return_exceptions=True)
        log.append("survived")

    with pytest.raises(SimulatedCrash):
        world.loop.run_until_complete(main())
    assert len(log) == 2
    with pytest.raises(PowerOff):
        world.loop.run_until_idle()
    world.kill()
    assert len(log) == 2


def test_a_swallowed_crash_ends_the_run() -> None:
    world = new_world()
    boot = world.boot()
    _crash_at(world, 1)

    async def main() -> str:
        with suppress(BaseException):
            boot.process.mkdir("/d")
        return "never mind"

    with pytest.raises(SimulatedCrash):
        world.loop.run_until_complete(main())
    world.kill()


def test_a_crash_in_a_call_of_a_worker_ends_the_run() -> None:
    world = new_world()
    boot = world.boot()
    _crash_at(world, 1)

    async def main() -> None:
        try:
            await boot.workers.run(lambda: boot.process.mkdir("/d"))
        finally:
            await boot.workers.run(lambda: boot.process.mkdir("/e"))

    with pytest.raises(SimulatedCrash):
        world.loop.run_until_complete(main())
    world.kill()
    assert world.boot().process.listdir("/") == []


def test_clean_up_of_an_ended_lifetime_runs_on_its_own_dead_process() -> None:
    world, log = new_world(), list[str]()
    boot = world.boot()

    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append("task")
            asyncio.get_running_loop().call_soon(log.append, "never: a callback")
            try:
                boot.process.mkdir("/too late")
            finally:
                await asyncio.create_task(asyncio.sleep(0), name="never")
                log.append("never: after an await")

    async def stubborn() -> None:
        for _ in range(5):
            with suppress(BaseException):
                await asyncio.sleep(3600)
            log.append("again")

    async def main() -> None:
        tasks = [asyncio.create_task(hold()), asyncio.create_task(stubborn())]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(stubborn()))

    world.loop.run_until_complete(main())
    world.kill()
    assert log == ["task", "again", "again", "again", "again", "again"]
    later = world.boot()
    gc.collect()
    world.loop.advance(10**13)
    assert len(log) == 6
    assert later.process.listdir("/") == []
    world.kill()


def test_an_asynchronous_generator_ends_with_its_lifetime() -> None:
    world, log = new_world(), list[str]()
    world.boot()

    async def generate(name: str) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            log.append(name)
            await asyncio.sleep(1)
            log.append("never: the sleep is over")

    async def use(kept: AsyncIterator[int]) -> None:
        async for _ in kept:
            await asyncio.Event().wait()

    kept = [generate("held by the test")]

    async def main() -> None:
        await anext(kept[0])
        asyncio.get_running_loop().create_task(use(generate("held by a task")))
        await asyncio.sleep(1)

    world.loop.run_until_complete(main())
    world.kill()
    assert log == ["held by the test", "held by a task"]
    kept.clear()
    gc.collect()
    assert len(log) == 2


def test_a_coroutine_that_never_ends_is_kept_and_never_resumed() -> None:
    world, log = new_world(), list[int]()
    world.boot()

    async def immortal() -> None:
        while True:
            with suppress(BaseException):
                await asyncio.sleep(1)
            log.append(1)

    async def main() -> None:
        asyncio.get_running_loop().create_task(immortal())
        await asyncio.sleep(0)

    world.loop.run_until_complete(main())
    world.kill()
    gc.collect()
    assert len(log) == MAX_CLOSES


def test_clean_up_that_fails_when_its_lifetime_ends_is_silent() -> None:
    world = new_world()
    boot = world.boot()

    def lines() -> Iterator[int]:
        try:
            yield 1
        finally:
            boot.process.mkdir("/too late")

    async def read() -> None:
        held = lines()
        next(held)
        await asyncio.Event().wait()

    world.loop.create_task(read())
    world.loop.run_until_idle()
    world.kill()


def test_an_ended_lifetime_leaks_no_memory() -> None:
    class Big:
        task: object = None

    world, held = new_world(), list[weakref.ref[Big]]()

    async def cycle(boot: Boot) -> None:
        big = Big()
        held.append(weakref.ref(big))
        big.task = asyncio.current_task()
        await asyncio.gather(asyncio.Event().wait(), boot.clock.sleep(10**12))

    def live() -> None:
        boot = world.boot()
        boot.loop.create_task(cycle(boot))
        world.loop.run_until_idle()
        world.kill()

    for _ in range(3):
        live()
    gc.collect()
    assert [big() for big in held] == [None, None, None]


def test_nothing_runs_on_the_loop_of_an_ended_lifetime() -> None:
    world = new_world()
    world.boot()
    loop = world.loop
    world.kill()
    with pytest.raises(PowerOff):
        loop.create_task(asyncio.sleep(0))
    with pytest.raises(HarnessError, match="boot the world again"):
        loop.run_until_idle()


def test_a_lifetime_cannot_be_ended_from_inside() -> None:
    world = new_world()
    world.boot()

    async def main() -> None:
        world.loop.abandon()

    with pytest.raises(HarnessError, match="from inside"):
        world.loop.run_until_complete(main())
    world.kill()


def test_a_base_exception_of_the_test_runner_stops_a_run_at_once() -> None:
    class StopTest(BaseException):
        pass

    world, log = new_world(), list[str]()
    world.boot()

    async def stop() -> None:
        raise StopTest

    async def main() -> None:
        tasks = [asyncio.create_task(stop())]
        tasks.append(asyncio.create_task(asyncio.sleep(0)))
        tasks[1].add_done_callback(lambda _: log.append("went on"))
        await asyncio.wait(tasks)

    with pytest.raises(StopTest):
        world.loop.run_until_complete(main())
    world.kill()
    assert log == []


def test_a_generator_in_the_middle_of_a_step_is_closed_with_its_lifetime() -> None:
    log = list[str]()

    async def pieces(inner: AsyncIterator[int] | None) -> AsyncIterator[int]:
        try:
            if inner is None:
                await asyncio.Event().wait()
            else:
                async for piece in inner:
                    yield piece
        finally:
            log.append("inner" if inner is None else "outer")

    async def main() -> None:
        generator = pieces(pieces(None))
        living.extend((weakref.ref(generator), weakref.ref(asyncio.current_task())))
        asyncio.get_running_loop().call_soon(world.disk.power_off)
        await anext(generator)

    living = list[weakref.ref[object]]()
    world = new_world()
    world.boot()
    with pytest.raises(SimulatedCrash):
        world.loop.run_until_complete(main())
    world.kill()
    gc.collect()
    assert log == ["inner", "outer"]
    assert [reference() for reference in living] == [None, None]


def test_a_coroutine_that_a_crash_kept_from_starting_is_closed_silently() -> None:
    async def main() -> None:
        raise AssertionError("it never begins")

    world = new_world()
    world.boot()
    world.loop.call_soon(world.disk.power_off)
    call = main()
    with pytest.raises(SimulatedCrash):
        world.loop.run_until_complete(call)
    world.kill()
    assert getcoroutinestate(call) == CORO_CLOSED


def test_a_world_that_is_dropped_without_an_end_is_silent() -> None:
    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)

    async def generate() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main() -> None:
        asyncio.get_running_loop().create_task(hold())
        await asyncio.sleep(0)
        asyncio.get_running_loop().create_task(hold())
        await anext(generate())

    world = new_world()
    world.boot()
    world.loop.run_until_complete(main())


def test_failures_of_a_lifetime_that_has_ended_are_dropped() -> None:
    loop = new_loop()
    loop.call_exception_handler({"message": "it failed"})
    loop.abandon()
    assert loop.unhandled() == ()
