"""OperatorCalls of the operator whose caller gave up: they go on, and nothing is half done."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from system.durable.trigger import TriggerSpec
from system.errors import LogStopped, NameTaken, StorageFull, UnknownAgent
from system.ports import Workers
from system.recovery.resume import Resume
from system.runtime import Options
from tests.unit.system.agents.room import Room, log_of, opened

T = TypeVar("T")

STEPS = range(12)
EVERY_STEP = pytest.mark.parametrize("steps", STEPS)


class SlowWorkers:
    """Workers whose calls begin when they ``may_run``."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.may_run = asyncio.Event()
        self.may_run.set()

    async def run(self, call: Callable[[], T]) -> T:
        await self.may_run.wait()
        return await self._workers.run(call)


def give_up(room: Room, work: Coroutine[Any, Any, object], steps: int) -> bool:
    """Wait so many steps for a call, then give it up; return whether it had ended by then."""

    async def asked() -> bool:
        call = asyncio.create_task(work)
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        return not call.cancelled()

    ended = room.run(asked())
    room.settle()
    room.check_no_failures()
    return ended


@EVERY_STEP
def test_a_message_is_there_once_and_is_known(steps: int) -> None:
    room, ada = opened()

    give_up(room, room.runtime.send(ada, "hello", "m"), steps)
    room.run(room.runtime.send(ada, "hello", "m"))
    room.settle()

    assert room.events(room.session(ada)).count("message.enqueued") == 1
    assert len(room.provider.prompts) == 1


@EVERY_STEP
def test_an_agent_is_there_or_its_name_is_free(steps: int) -> None:
    room = Room()
    room.open()

    give_up(room, room.runtime.create_agent("Ada", request_id="r"), steps)
    ada = room.run(room.runtime.create_agent("Ada", request_id="r"))

    assert [observe.agent_id for observe in room.runtime.view().agents] == [ada]
    with pytest.raises(NameTaken):
        room.create("Ada")
    room.reopen()
    assert [observe.agent_id for observe in room.runtime.view().agents] == [ada]


@EVERY_STEP
def test_an_end_is_whole(steps: int) -> None:
    room, ada = opened()

    give_up(room, room.runtime.terminate(ada), steps)
    observe = room.runtime.view().agents[0]
    if observe.alive:
        room.run(room.runtime.terminate(ada))

    assert room.events(room.session(ada)).count("agent.terminated") == 1
    assert room.state(room.session(ada)) == "TERMINATED"
    assert room.create("Ada") != ada


@EVERY_STEP
def test_a_suspension_is_whole(steps: int) -> None:
    room, ada = opened()

    give_up(room, room.runtime.suspend(ada), steps)
    room.run(room.runtime.suspend(ada))

    assert room.state(room.session(ada)) == "SUSPENDED"
    room.say(ada, "hello")
    assert len(room.provider.prompts) == 1


def test_a_call_is_given_up_at_each_of_its_steps() -> None:
    room, ada = opened()
    ended = [give_up(room, room.runtime.send(ada, "hello"), steps) for steps in STEPS]
    assert not ended[0]
    assert ended[-1]


def test_one_request_asked_twice_at_once_makes_one_agent() -> None:
    room = Room()
    room.open()

    async def both() -> list[str]:
        calls = (room.runtime.create_agent("Ada", request_id="r") for _ in range(2))
        return list(await asyncio.gather(*calls))

    first, second = room.run(both())
    assert first == second
    assert len(room.runtime.view().agents) == 1


def test_one_request_that_the_disk_refuses_raises_for_both_who_asked_and_can_be_repeated() -> None:
    room = Room()
    room.open()
    room.files.fail("mkdir", "", errno.ENOSPC)

    async def both() -> list[object]:
        calls = (room.runtime.create_agent("Ada", request_id="r") for _ in range(2))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    assert [type(raised) for raised in room.run(both())] == [StorageFull, StorageFull]
    assert room.run(room.runtime.create_agent("Ada", request_id="r"))


def test_a_request_whose_outcome_is_unknown_reports_that_again() -> None:
    room = Room()
    room.open()
    room.files.fail("fdatasync", "events.jsonl", errno.EIO)

    for _ in range(2):
        with pytest.raises(LogStopped):
            room.run(room.runtime.create_agent("Ada", request_id="r"))
    assert room.runtime.view().in_doubt == ("Ada",)

    room.reopen()
    assert room.run(room.runtime.create_agent("Ada", request_id="r"))


def test_close_waits_for_calls_that_are_under_way() -> None:
    room, ada = opened(Options(resume=Resume.NONE))

    async def all_at_once() -> list[object]:
        runtime = room.runtime
        calls = (
            runtime.create_agent("Bob"), runtime.send(ada, "hello"), runtime.close(),
        )  # fmt: skip
        return list(await asyncio.gather(*calls, return_exceptions=True))

    bob, _message_id, closed = room.run(all_at_once())

    assert closed is None
    room.reopen(start=False)
    assert room.named("Bob").agent_id == bob
    assert len(room.named("Ada").pending) == 1


def test_close_waits_for_calls_whose_threads_are_slow() -> None:
    room = Room()
    workers = SlowWorkers(room.host.workers)
    room.host = replace(room.host, workers=workers)
    runtime = room.open()
    room.run(runtime.emit(TriggerSpec("IMMEDIATE")))
    workers.may_run.clear()

    async def all_at_once() -> list[object]:
        calls = (
            runtime.create_agent("Ada", request_id="r"), runtime.triggers.open_rows(),
            runtime.activities.undecided(), runtime.schedules.living(),
        )  # fmt: skip
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(1)
        closing = asyncio.create_task(runtime.close())
        await asyncio.sleep(1)
        assert not closing.done()
        workers.may_run.set()
        await closing
        assert all(task.done() for task in tasks)
        return list(await asyncio.gather(*tasks))

    ada, waiting, *others = room.run(all_at_once())

    assert isinstance(waiting, list)
    assert (len(waiting), others) == (1, [[], []])
    room.kill()
    room.open(start=False)
    assert (room.named("Ada").agent_id, room.state(room.session(str(ada)))) == (ada, "SUSPENDED")


def test_a_close_that_was_given_up_closes() -> None:
    room, ada = opened()
    give_up(room, room.runtime.close(), 2)
    assert room.state(room.session(ada)) == "SUSPENDED"
    room.reopen()
    room.run(room.runtime.terminate(ada))
    with pytest.raises(UnknownAgent):
        room.run(room.runtime.send(ada, "hello"))
    assert room.exists(log_of(room.session(ada)))
