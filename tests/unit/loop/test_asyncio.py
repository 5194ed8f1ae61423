"""Ordinary asyncio code runs on the simulated loop unchanged, under every schedule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import partial

import pytest

from sim.choices import Choices, PlainChoices, SeededChoices
from sim.errors import UnsupportedOperation
from tests.unit.loop.loops import new_loop, run

SCHEDULES: list[Choices] = [PlainChoices(), *(SeededChoices(seed) for seed in range(1, 20))]


async def gather() -> None:
    async def later(value: int) -> int:
        await asyncio.sleep(10 - value)
        return value

    assert await asyncio.gather(*(later(value) for value in range(5))) == [0, 1, 2, 3, 4]


async def wait() -> None:
    tasks = [asyncio.create_task(asyncio.sleep(delay, delay)) for delay in (3, 1, 2)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [1]
    done, pending = await asyncio.wait(pending, timeout=1.5)
    assert [task.result() for task in done] == [2]
    assert [await task for task in pending] == [3]
    assert [await first for first in asyncio.as_completed([asyncio.sleep(1, "a")])] == ["a"]


async def timeout() -> None:
    started = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await asyncio.sleep(86400)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 3600)
    async with asyncio.timeout(10) as inner:
        await asyncio.sleep(9)
    assert not inner.expired()
    assert asyncio.get_running_loop().time() - started == pytest.approx(7209)


async def queue() -> None:
    items: asyncio.Queue[int] = asyncio.Queue(2)
    got: list[int] = []

    async def consume() -> None:
        while True:
            got.append(await items.get())
            items.task_done()

    consumers = [asyncio.create_task(consume()) for _ in range(3)]
    for number in range(10):
        await items.put(number)
    await items.join()
    for consumer in consumers:
        consumer.cancel()
    assert await asyncio.gather(*consumers, return_exceptions=True) != []
    assert sorted(got) == list(range(10))


async def locks() -> None:
    lock, inside, most = asyncio.Lock(), [0], [0, 0]
    semaphore = asyncio.Semaphore(2)

    async def enter(which: int, door: asyncio.Lock | asyncio.Semaphore) -> None:
        async with door:
            inside[0] += 1
            most[which] = max(most[which], inside[0])
            await asyncio.sleep(1)
            inside[0] -= 1

    await asyncio.gather(*(enter(0, lock) for _ in range(5)))
    await asyncio.gather(*(enter(1, semaphore) for _ in range(5)))
    assert most == [1, 2]


async def condition_and_event() -> None:
    condition, event, count = asyncio.Condition(), asyncio.Event(), [0]

    async def count_up() -> None:
        await event.wait()
        async with condition:
            count[0] += 1
            condition.notify_all()

    tasks = [asyncio.create_task(count_up()) for _ in range(4)]
    await asyncio.sleep(1)
    event.set()
    async with condition:
        await condition.wait_for(lambda: count[0] == 4)
    await asyncio.gather(*tasks)


async def task_group() -> None:
    cancelled: list[int] = []

    async def wait_long(number: int) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError("group")

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(wait_long(number))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await all_of_them()
    assert sorted(cancelled) == [0, 1, 2]


async def async_generators() -> None:
    closed: list[str] = []

    async def count() -> AsyncIterator[int]:
        try:
            for number in range(100):
                await asyncio.sleep(1)
                yield number
        finally:
            await asyncio.sleep(1)
            closed.append("closed")

    assert [number * 2 async for number in count() if number < 3][:3] == [0, 2, 4]
    async for number in count():
        if number == 2:
            break
    await asyncio.sleep(5)
    assert closed == ["closed", "closed"]


async def cancellation() -> None:
    log: list[str] = []

    async def clean_up() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            log.append("clean")

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(1)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        await task
    shielded = asyncio.create_task(asyncio.sleep(5, "kept"))
    waiting = asyncio.create_task(asyncio.wait_for(asyncio.shield(shielded), 1))
    with pytest.raises(TimeoutError):
        await waiting
    assert await shielded == "kept"
    assert log == ["clean"]


async def context_variables() -> None:
    name: ContextVar[str] = ContextVar("name", default="unset")

    async def introduce(value: str) -> str:
        name.set(value)
        await asyncio.sleep(1)
        return name.get()

    assert [*await asyncio.gather(introduce("a"), introduce("b"))] == ["a", "b"]
    assert name.get() == "unset"


async def callbacks_in_their_order() -> None:
    order: list[int] = []
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def record(number: int, _: object) -> None:
        order.append(number)

    for number in range(5):
        future.add_done_callback(partial(record, number))
    for number in range(5, 10):
        loop.call_soon(order.append, number)
    await asyncio.sleep(0.1)
    future.set_result(None)
    await asyncio.sleep(0.1)
    assert order == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("choices", SCHEDULES)
@pytest.mark.parametrize(
    "feature",
    [
        gather, wait, timeout, queue, locks, condition_and_event, task_group, async_generators,
        cancellation, context_variables, callbacks_in_their_order,
    ],
)  # fmt: skip
def test_a_feature_of_asyncio_works_under_every_schedule(
    feature: Callable[[], Awaitable[None]], choices: Choices
) -> None:
    async def main() -> None:
        await feature()

    run(main(), choices)


def test_a_day_of_timers_takes_no_time_and_they_run_in_their_order() -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def record(hours: int) -> None:
            await asyncio.sleep(hours * 3600)
            order.append(hours)

        await asyncio.gather(*(record(hours) for hours in (24, 3, 11, 7)))
        return order

    assert run(main()) == [3, 7, 11, 24]


def test_cancelled_timers_do_not_move_the_clock_and_do_not_pile_up() -> None:
    loop = new_loop()

    async def main() -> None:
        for _ in range(1000):
            async with asyncio.timeout(86400):
                await asyncio.sleep(0)
        loop.call_later(3600, print).cancel()

    loop.run_until_complete(main())
    loop.run_until_idle(10**15)
    assert loop.clock.now_ns == 0
    assert len(loop._timers.heap) < 200


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("run_in_executor", (None, print)), ("create_connection", (print,)),
     ("subprocess_exec", (print,)), ("add_reader", (0, print)), ("add_signal_handler", (2, print)),
     ("getaddrinfo", ("localhost", 1)), ("set_debug", (True,))],
)  # fmt: skip
def test_a_method_that_needs_the_real_machine_is_refused_by_name(
    name: str, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(UnsupportedOperation, match=name.removeprefix("set_")):
        getattr(new_loop(), name)(*arguments)


def test_a_failure_that_is_never_retrieved_is_collected() -> None:
    loop = new_loop()

    async def fail() -> None:
        raise ValueError("lost")

    async def main() -> None:
        task = asyncio.create_task(fail(), name="loser")
        await asyncio.wait([task])
        loop.call_soon(int, "x")
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    assert [(found.task, repr(found.failure)) for found in loop.unhandled()] == [
        ("", "ValueError(\"invalid literal for int() with base 10: 'x'\")"),
        ("loser", "ValueError('lost')"),
    ]
    assert loop.unhandled() == ()


def test_a_failure_that_a_ready_callback_will_retrieve_is_not_collected() -> None:
    loop = new_loop()
    retrieved: list[str] = []

    async def fail() -> None:
        raise ValueError("retrieved")

    async def main() -> None:
        task = asyncio.create_task(fail(), name="loser")
        task.add_done_callback(lambda ended: retrieved.append(repr(ended.exception())))
        await asyncio.sleep(0)
        # The callback is ready and has not run.
        assert task.done()
        assert retrieved == []
        assert loop.unhandled() == ()

    loop.run_until_complete(main())
    loop.run_until_idle()
    assert retrieved == ["ValueError('retrieved')"]
    assert loop.unhandled() == ()
