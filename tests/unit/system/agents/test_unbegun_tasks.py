"""New tasks replace the background tasks that a program cancels, most before their first step."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from faults.injector import FaultInjector
from system.durable.activity import ActivityStatus
from system.durable.state import Transaction
from system.errors import Closed
from tests.unit.system.agents import acting
from tests.unit.system.agents.emitting import emit, fail_disk
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, opened
from tests.unit.system.collected import HOUR, ended, family

USER_LOG = "user/events.jsonl"


def cancel_begun(room: Room, begin: Callable[[], object]) -> None:
    """Cancel the task that a call starts, before its first step."""

    async def begin_and_cancel() -> None:
        before = asyncio.all_tasks()
        begin()
        (task,) = asyncio.all_tasks() - before
        task.cancel()

    room.run(begin_and_cancel())
    room.settle()


def test_an_agent_whose_task_was_cancelled_is_woken_again() -> None:
    room, ada = opened()
    room.reopen(start=False)
    room.run(room.runtime.send(ada, "first"))
    cancel_begun(room, room.runtime.start)
    assert not room.named("Ada").running

    room.say(ada, "second")

    assert room.shown() == [("text", "first"), ("text", "second")]
    room.run(room.runtime.idle())
    room.check_no_failures()


def test_a_dispatch_whose_repetition_was_cancelled_is_repeated_after_the_next_refusal() -> None:
    room, ada = opened()
    dispatcher = room.runtime._dispatcher
    cancel_begun(room, lambda: dispatcher._retry_later(room.runtime._orchestrator.user))
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))
    assert room.to_user() == []

    room.settle(1)

    assert room.to_user() == [("text", "hello")]


def test_the_feeder_feeds_after_its_timer_was_cancelled() -> None:
    room, ada = opened()
    emit(room, ada, "first")
    cancel_begun(room, room.runtime._feeder.feed_now)

    emit(room, ada, "second")

    assert len(room.provider.prompts) == 2


def test_the_feeder_sets_a_timer_that_was_cancelled_while_it_slept() -> None:
    room, ada = opened()
    emit(room, ada, "first", in_s=10)
    timer = room.runtime._feeder._timer
    assert timer is not None
    timer.cancel()
    room.settle(11)
    assert room.provider.prompts == []

    emit(room, ada, "second", in_s=10)

    assert len(room.provider.prompts) == 1


def test_a_trigger_is_routed_after_the_routing_was_cancelled() -> None:
    room, _ = opened()
    cancel_begun(room, room.runtime._feeder._routing.begin)

    emit(room, None)

    assert len(room.provider.prompts) == 1


def test_agents_are_collected_after_the_timer_was_cancelled() -> None:
    room, ada, bob = family()
    room.reopen(start=False)
    cancel_begun(room, room.runtime.start)
    assert room.runtime._collector is not None
    assert room.runtime._collector.tasks() == []

    room.run(room.runtime.terminate(ada))
    room.settle(HOUR + 1)

    assert ended(room, bob) is not None


def test_a_collection_that_is_cancelled_behind_its_commit_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, _, bob = family()
    durable, collector = room.runtime._orchestrator.durable, room.runtime._collector
    assert collector is not None
    run = durable.run

    async def run_and_cancel(work: Callable[[Transaction], None]) -> None:
        await run(work)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(durable, "run", run_and_cancel)
        room.settle(HOUR + 1)
    assert ended(room, bob) is not None

    room.run(collector.collect())

    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    assert room.runtime.report.collected == 1
    assert not room.runtime.view().state_stopped
    room.check_no_failures()


def test_an_activity_whose_task_was_cancelled_is_performed() -> None:
    room, _ = acting.opened()
    cancel_begun(room, lambda: room.runtime._orchestrator.activities.begin(["activity:a"]))

    done = room.run(room.runtime.activities.perform("activity:a", "mail", {}))

    assert done.status is ActivityStatus.DONE


def test_a_call_goes_on_after_the_task_of_its_activity_was_cancelled() -> None:
    room, _ = acting.opened()

    async def perform() -> ActivityStatus:
        call = asyncio.create_task(room.runtime.activities.perform("activity:a", "mail", {}))
        tasks = room.runtime._orchestrator.activities._tasks
        for _ in range(100):
            if "activity:a" not in tasks:
                await asyncio.sleep(0)
        tasks["activity:a"].cancel()
        return (await call).status

    assert room.run(perform()) is ActivityStatus.DONE
    assert len(room.effects.calls) == 1


def test_an_attempt_whose_task_was_cancelled_before_its_outcome_waits_for_the_boot() -> None:
    async def fill_the_disk() -> None:
        injectors.append(fail_disk(room, "write *state.db-wal #1+ ENOSPC"))

    injectors: list[FaultInjector] = []
    room, _ = acting.opened(fill_the_disk)
    call = room.world.loop.create_task(room.runtime.activities.perform("activity:a", "pay", {}))
    room.settle(1)
    room.runtime._orchestrator.activities._tasks["activity:a"].cancel()
    injectors[0].remove()
    room.settle(1)

    with pytest.raises(Closed, match="the next boot goes on with it"):
        room.run(call)

    room.reopen()
    done = room.run(room.runtime.activities.perform("activity:a", "pay", {}))
    assert (done.status, done.attempts) == (ActivityStatus.DONE, 2)
