"""The schedule comes from the choices alone; a stuck world reports the place of each task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from sim.choices import PlainChoices, SeededChoices
from sim.errors import HarnessError, Livelock, Stuck
from sim.loop.clock import TICK_NS
from sim.trace import Trace
from tests.meta.source_tree import run_python
from tests.unit.loop.loops import SECOND_NS, new_loop, new_world

PROGRAM = """
import asyncio
from sim.choices import SeededChoices
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from sim.trace import Trace

async def step(name, others):
    for _ in range(5):
        await asyncio.sleep(0)
        for other in {"a", "b", "c", name}:  # an order that differs from process to process
            pass

async def main():
    await asyncio.gather(*(asyncio.create_task(step(name, name), name=name) for name in "abcdef"))

loop = SimulatedLoop(SimulatedClock(), SeededChoices(7))
loop.trace = Trace()
loop.run_until_complete(main())
print("\\n".join(loop.trace.lines))
"""


def _order(seed: int) -> str:
    loop, order = new_loop(SeededChoices(seed) if seed else PlainChoices()), list[str]()

    async def record(name: str) -> None:
        await asyncio.sleep(0)
        order.append(name)

    async def main() -> None:
        await asyncio.gather(*(record(name) for name in "abcd"))

    loop.run_until_complete(main())
    return "".join(order)


def test_the_plainest_schedule_is_first_come_first_served() -> None:
    assert _order(0) == "abcd"


def test_every_order_of_tasks_can_be_chosen_and_the_same_choices_give_the_same() -> None:
    orders = [_order(seed) for seed in range(1, 400)]
    assert len({*orders}) == 24
    assert orders == [_order(seed) for seed in range(1, 400)]


def test_the_schedule_is_the_same_in_every_process() -> None:
    traces = []
    for seed in ("1", "2"):
        finished = run_python("-c", PROGRAM, environment={"PYTHONHASHSEED": seed})
        assert finished.returncode == 0, finished.stderr
        traces.append(finished.stdout)
    assert traces[0] == traces[1]
    assert len(traces[0].splitlines()) > 30


def test_the_trace_of_a_world_has_the_schedule() -> None:
    def trace(seed: int) -> list[str]:
        world = new_world(SeededChoices(seed))
        world.trace = Trace()
        world.boot()

        async def main() -> None:
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(5)))

        world.loop.run_until_complete(main())
        world.kill()
        return world.trace.lines

    assert trace(1) == trace(1) != trace(2)
    assert "  run Task-1" in trace(1)


def test_a_run_until_idle_ends_at_the_last_timer_that_was_due() -> None:
    loop, order = new_loop(), list[int]()
    for seconds in (1, 5, 9):
        loop.call_later(seconds, order.append, seconds)
    loop.run_until_idle()
    assert (order, loop.clock.now_ns) == ([], 0)
    loop.run_until_idle(SECOND_NS)
    assert (order, loop.clock.now_ns) == ([1], SECOND_NS)
    loop.run_until_idle(7 * SECOND_NS)
    assert (order, loop.clock.now_ns) == ([1, 5], 5 * SECOND_NS)
    loop.advance(3 * SECOND_NS)
    assert (order, loop.clock.now_ns) == ([1, 5], 8 * SECOND_NS)
    loop.advance(3 * SECOND_NS)
    assert (order, loop.clock.now_ns) == ([1, 5, 9], 11 * SECOND_NS)


def test_the_clock_sleeps_and_times_out_in_virtual_time() -> None:
    world = new_world()
    clock = world.boot().clock

    async def main() -> str:
        await clock.sleep(5 * SECOND_NS)
        async with clock.timeout(SECOND_NS):
            await clock.sleep(2 * SECOND_NS)
        return "never"

    with pytest.raises(TimeoutError):
        world.loop.run_until_complete(main())
    assert world.clock.now_ns == 6 * SECOND_NS


def test_the_wall_clock_steps_back_and_the_timers_do_not() -> None:
    world = new_world()
    clock = world.boot().clock
    before_ns = clock.wall_ns()
    world.clock.step_wall(-90 * SECOND_NS)
    assert clock.wall_ns() - before_ns < -89 * SECOND_NS
    world.clock.advance(SECOND_NS)
    assert clock.monotonic_ns() > SECOND_NS


def test_a_stuck_world_names_the_call_that_each_task_awaits() -> None:
    loop = new_loop()
    event, queue = asyncio.Event(), asyncio.Queue[int]()

    async def answers() -> AsyncIterator[int]:
        yield 1
        await event.wait()

    async def listen() -> None:
        async for _ in answers():
            pass

    async def consume() -> None:
        await queue.get()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(listen(), name="listener")
            group.create_task(consume(), name="consumer")

    with pytest.raises(Stuck, match="Task-1 is not done") as caught:
        loop.run_until_complete(main())
    text = str(caught.value)
    name = "test_a_stuck_world_names_the_call_that_each_task_awaits.<locals>"
    first = test_a_stuck_world_names_the_call_that_each_task_awaits.__code__.co_firstlineno
    assert f"listener ({name}.listen) waits for Event.wait at {__file__}:{first + 6} in" in text
    assert f"consumer ({name}.consume) waits for Queue.get at {__file__}:{first + 13} in" in text
    assert "waits for TaskGroup.__aexit__ at" in text
    loop.abandon()


def test_a_livelock_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.loop.event_loop.MAX_STEPS", 1000)

    async def poll() -> None:
        for _ in range(10**9):
            await asyncio.sleep(0)

    loop = new_loop()
    with pytest.raises(Livelock, match="1000 steps in one run"):
        loop.run_until_complete(poll())
    loop.abandon()


def test_a_world_does_not_run_inside_a_running_loop() -> None:
    async def main() -> None:
        with pytest.raises(HarnessError, match="running already"):
            new_loop().run_until_idle()

    new_loop().run_until_complete(main())


def test_advancing_less_than_the_readings_took_does_not_set_the_clock_back() -> None:
    loop = new_loop()
    loop.call_soon(loop.clock.monotonic_ns)
    loop.advance(1)
    assert loop.clock.now_ns == TICK_NS
