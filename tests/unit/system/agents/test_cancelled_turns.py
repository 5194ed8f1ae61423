"""Turns, and creations of ``state.db``, that are cancelled, as when a program ends."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from system.durable.trigger import TriggerSpec, TriggerStatus
from system.errors import AgentStopped
from system.ports import JsonObject
from system.runtime import Options
from tests.unit.system.agents.emitting import row, spec
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room, log_of, opened
from tests.unit.system.agents.test_recorded_turns import payload, records, turn_lines


@pytest.mark.parametrize("failing", [False, True])
def test_a_turn_whose_task_is_cancelled_is_recorded_as_its_line_says(*, failing: bool) -> None:
    outcomes = set()
    for steps in range(40):
        room, ada = opened()
        log = log_of(room.session(ada))
        room.run(room.runtime.send(ada, "hello"))
        if failing:
            room.files.fail("fdatasync", log, errno.EIO)
        room.run(cancel_turns(room, ada, steps))
        room.settle()
        failed = room.events(room.session(ada)).count("turn.failed")
        room.reopen(start=False)
        committed = {line["turn_id"] for line in turn_lines(room, ada, "turn.complete")}
        assert failed + len(committed) == 1, steps
        for record in records(room):
            response: Any = record.final_response
            succeeded = response is not None and response["status"] == "success"
            assert succeeded == (payload(record, 1)["turnId"] in committed), steps
        outcomes.add(failed)
    assert outcomes == {0, 1}


async def cancel_turns(room: Room, agent_id: str, steps: int) -> None:
    """Cancel the task that takes the turns of an agent after so many steps, if it still runs."""
    for _ in range(steps):
        await asyncio.sleep(0)
    if (turns := room.agent(agent_id).work.turns.task) is not None:
        turns.cancel()


async def cancel_all_tasks(_room: Room, _agent_id: str, steps: int) -> None:
    """Cancel all tasks after ``steps`` steps, as ``asyncio.run`` does when its program ends."""
    for _ in range(steps):
        await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


def to_user(text: str) -> tuple[str, JsonObject]:
    return "send_message", {"to": "USER", "payload": text}


def in_a_second(*calls: tuple[str, JsonObject]) -> tuple[str, JsonObject]:
    """Set a reminder that makes another turn call these tools."""
    return "remind_me", {"delay_ns": SECOND_NS, "payload": script(*calls)}


def work(name: str) -> tuple[tuple[str, JsonObject], ...]:
    """Write to USER in this turn, and in another one a second later."""
    return to_user(name), in_a_second(to_user(f"{name}, later"))


async def at_the_next_prompt(room: Room) -> None:
    """Wait until the provider gets a prompt."""
    asked = asyncio.Event()

    async def ask() -> None:
        asked.set()

    room.provider.hooks["send"] = ask
    await asked.wait()


@pytest.mark.parametrize("cancel", [cancel_turns, cancel_all_tasks])
def test_no_later_turn_passes_the_outbox_of_a_turn_that_was_cancelled(
    cancel: Callable[[Room, str, int], Awaitable[None]],
) -> None:
    were_stopped = set()
    for steps in range(60):
        room, ada = opened()
        room.say(ada, script(in_a_second(*work("first"))))
        room.run(at_the_next_prompt(room))
        room.run(cancel(room, ada, steps))
        room.settle()
        names = ["first"]
        with suppress(AgentStopped):
            room.say(ada, script(*work("second")))
            names.append("second")
        room.settle(1)
        were_stopped.add(bool(room.named("Ada").stopped))
        room.check_no_failures()

        room.reopen()
        room.settle(2)

        expected = [text for name in names for text in (name, f"{name}, later")]
        assert sorted(str(text) for _, text in room.to_user()) == expected, steps
    assert were_stopped == {True, False}


@pytest.mark.parametrize("cancel", [cancel_turns, cancel_all_tasks])
def test_a_line_whose_write_was_cancelled_is_written_once(
    cancel: Callable[[Room, str, int], Awaitable[None]],
) -> None:
    for steps in range(60):
        room, ada = opened()
        bob = room.create("Bob")
        room.run(room.runtime.send(ada, script(to_user("from Ada"))))
        room.run(at_the_next_prompt(room))
        room.run(cancel(room, ada, steps))
        room.settle()

        room.say(bob, script(to_user("from Bob")))
        room.reopen()
        room.settle()

        written = room.read("user/events.jsonl")
        assert [written.count(name) for name in (b"from Ada", b"from Bob")] == [1, 1], steps


@pytest.mark.parametrize("cancel", [cancel_turns, cancel_all_tasks])
def test_a_snapshot_whose_write_was_cancelled_repeats_no_turn(
    cancel: Callable[[Room, str, int], Awaitable[None]],
) -> None:
    for steps in range(60):
        room, ada = opened(Options(snapshot_lines=4))
        for _ in range(6):
            room.say(ada, "before")
        room.run(room.runtime.send(ada, "first"))
        room.run(at_the_next_prompt(room))
        room.run(cancel(room, ada, steps))
        room.settle()

        with suppress(AgentStopped):
            room.say(ada, "second")

        agent = room.agent(ada)
        exchanges = room.run(agent.log.conversation())
        assert len(exchanges) == agent.history.turn_count, steps


async def emit_and_cancel(room: Room, trigger: TriggerSpec, steps: int) -> None:
    call = asyncio.create_task(room.runtime.emit(trigger, "t"))
    await cancel_all_tasks(room, "", steps)
    await asyncio.wait([call])


def test_a_database_whose_creation_was_cancelled_is_used_and_closed() -> None:
    were_created = set()
    for steps in range(20):
        room, ada = opened()
        tea = spec(room, ada)

        room.run(emit_and_cancel(room, tea, steps))
        room.settle()
        were_created.add(room.runtime._orchestrator.state is not None)
        room.run(room.runtime.emit(tea, "t"))
        room.run(room.runtime.close())
        room.open()
        room.settle()
        assert row(room, "t").status is TriggerStatus.DONE, steps
    assert were_created == {True, False}
