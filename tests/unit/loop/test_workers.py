"""A call of a worker is one step of the schedule, and runs even if its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from sim.choices import SeededChoices
from tests.unit.loop.loops import new_world


def _orders(seed: int) -> str:
    world, log = new_world(SeededChoices(seed)), list[str]()
    workers = world.boot().workers

    async def work(name: str) -> None:
        await workers.run(lambda: log.append(name))

    async def main() -> None:
        await asyncio.gather(*(work(name) for name in "abc"))

    world.loop.run_until_complete(main())
    return "".join(log)


def test_calls_of_several_tasks_run_in_every_order() -> None:
    assert len({_orders(seed) for seed in range(100)}) == 6


def test_a_call_returns_its_result_or_raises_its_exception() -> None:
    world = new_world()
    workers = world.boot().workers
    assert world.loop.run_until_complete(workers.run(lambda: 7)) == 7
    with pytest.raises(ZeroDivisionError):
        world.loop.run_until_complete(workers.run(lambda: 1 // 0))


def test_other_tasks_run_before_and_after_a_call_and_never_during_it() -> None:
    world, log = new_world(), list[str]()
    workers = world.boot().workers

    async def work() -> None:
        log.append("called")
        await workers.run(lambda: log.extend(["begun", "ended"]))
        log.append("returned")

    async def other() -> None:
        for _ in range(3):
            log.append("other")
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(work(), other())

    world.loop.run_until_complete(main())
    assert log == ["called", "other", "begun", "ended", "other", "returned", "other"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_caller_is_resumed_after_its_call_has_ended(seed: int, times: int) -> None:
    world, log = new_world(SeededChoices(seed)), list[str]()
    workers = world.boot().workers

    async def work() -> None:
        try:
            await workers.run(lambda: log.append("written"))
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        for _ in range(times):
            asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.wait([task])

    world.loop.run_until_complete(main())
    assert log in (["written"], ["written", "cancelled"], [])


def test_a_caller_that_is_cancelled_while_it_waits_for_the_end_waits_on() -> None:
    logs = {_of_a_caller_that_is_cancelled_again(seed) for seed in range(300)}
    assert logs == {("written", "resumed"), ()}


def _of_a_caller_that_is_cancelled_again(seed: int) -> tuple[str, ...]:
    world, log = new_world(SeededChoices(seed)), list[str]()
    workers = world.boot().workers

    async def work() -> None:
        try:
            await workers.run(lambda: log.append("written"))
        finally:
            log.append("resumed")

    async def main() -> None:
        task = asyncio.create_task(work())
        for _ in range(4):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])

    world.loop.run_until_complete(main())
    return tuple(log)


def test_an_exception_of_a_call_whose_caller_was_cancelled_is_dropped() -> None:
    world = new_world()
    workers = world.boot().workers

    async def main() -> None:
        task = asyncio.create_task(workers.run(lambda: 1 // 0))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    world.loop.run_until_complete(main())
    world.loop.raise_unhandled()
