"""Dead outcomes: messages about activities that were presented too often; USER gets the error."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.agents import event
from system.agents.message import USER, USER_SESSION
from system.durable.activity import Decision
from system.ports import EffectRefused, Json, JsonObject, Performed
from system.runtime import Options
from system.storage.line import Line
from tests.unit.system.agents.acting import ActingRoom, acting, opened, perform
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room

REASON = "it was presented 5 times, and no turn came to its end"
SHORT = Options(snapshot_lines=3, recording=None)
USER_LOG = "user/events.jsonl"


def lines_of(room: Room, session_id: str, event_name: str) -> list[Line]:
    """Return the lines of an event in all segments of a log."""
    log = room.runtime._orchestrator.sessions[session_id].log.log
    assert log is not None
    return [line for line in [*log.earlier_lines(), *log.lines()] if line.event == event_name]


def errors_of(room: Room) -> list[Json]:
    """Return the payloads of all errors that USER has ever got."""
    messages = [line.data for line in lines_of(room, USER_SESSION, event.MESSAGE_ENQUEUED)]
    return [data["payload"] for data in messages if data["kind"] == "error"]


def number_of(room: Room, agent_id: str) -> int:
    """Return the number of the newest segment of a log."""
    log = room.agent(agent_id).log.log
    assert log is not None
    return log.number


def begin_segments(room: Room, agent_id: str) -> None:
    """Let an agent write to USER until its log has begun further segments."""
    before = number_of(room, agent_id)
    for number in range(12):
        room.say(agent_id, script(("send_message", {"to": "USER", "payload": number})))
    assert number_of(room, agent_id) > before


def error(key: str, status: str = "DONE", suffix: str = "result") -> tuple[str, JsonObject]:
    """Return kind and payload of the error to USER about an outcome."""
    payload: JsonObject = {
        "reason": REASON, "message_id": f"{key}.{suffix}", "activity_id": key, "action": "mail",
        "status": status,
    }  # fmt: skip
    return "error", payload


def fail_later_turns(room: Room, times: int = 5) -> None:
    """Let the turns fail that follow the next one."""

    async def fail() -> None:
        room.provider.hooks.clear()
        # The turn that asks for the activity comes to its end.
        room.provider.failures["send"] = []
        room.provider.fail("send", times)

    room.provider.hooks["sent"] = fail


def dead_outcome(room: ActingRoom, ada: str) -> str:
    """Let the outcome of an activity die; return the id of the activity."""
    fail_later_turns(room)
    key = perform(room, ada)
    room.settle(60)
    assert len(lines_of(room, room.session(ada), event.MESSAGE_DEAD)) == 1
    return key


def lost_outcome(room: ActingRoom, ada: str) -> str:
    """Interrupt the first four turns that show an outcome; the fifth is under way."""

    async def hold() -> None:
        room.provider.hooks.clear()
        room.provider.hooks["send"] = asyncio.Event().wait

    room.provider.hooks["sent"] = hold
    key = perform(room, ada)
    for _ in range(4):
        room.reopen()
        room.settle()
    assert room.named("Ada").pending[0] == f"{key}.result"
    return key


@pytest.mark.parametrize(
    ("answer", "status"), [(Performed("ref", 1), "DONE"), (EffectRefused("no"), "FAILED")]
)
def test_user_gets_an_error_about_an_outcome_over_which_five_turns_failed(
    answer: object, status: str
) -> None:
    room, ada = opened(answer)
    key = dead_outcome(room, ada)

    [message] = room.runtime.view().user
    assert (message.kind.value, message.payload) == error(key, status)
    assert (message.message_id, message.sender) == (f"{key}.result.error", ada)
    assert message.reply_to == f"{key}.result"
    assert room.named("Ada").pending == ()
    room.check_no_failures()


def test_user_gets_an_error_about_an_outcome_whose_turns_five_kills_have_interrupted() -> None:
    room, ada = opened()
    key = lost_outcome(room, ada)
    assert room.to_user() == []

    room.reopen()
    room.settle()

    assert room.to_user() == [error(key)]
    room.check_no_failures()


def test_an_uncertain_outcome_that_is_dead_is_reported_twice() -> None:
    room, ada = opened(RuntimeError("the line is busy"))
    key = dead_outcome(room, ada)

    reports = [message.message_id for message in room.runtime.view().user]
    assert reports == [f"{key}.uncertain", f"{key}.result.error"]
    assert room.to_user()[1] == error(key, "UNCERTAIN")


def test_user_gets_an_error_about_a_decision_that_the_agent_never_learns() -> None:
    room, ada = opened(RuntimeError("the line is busy"))
    key = perform(room, ada)
    room.provider.fail("send", 5)

    room.run(room.runtime.activities.resolve(key, Decision.PERFORMED, "Eve", "ref"))
    room.settle(60)

    assert room.to_user()[1:] == [error(key, "DONE", "decided")]


# -- exactly once ------------------------------------------------------------------------


def test_a_boot_sends_the_error_that_a_crash_has_prevented() -> None:
    room, ada = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC, sticky=True)
    key = dead_outcome(room, ada)
    assert room.to_user() == []

    room.reopen()

    assert room.runtime.report.redone == 1
    assert room.to_user() == [error(key)]


def test_the_watermark_waits_for_the_error() -> None:
    room, ada = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC, sticky=True)
    dead_outcome(room, ada)
    room.say(ada, 1)
    [dead] = [line for line in room.lines(room.session(ada)) if line.event == "message.dead"]
    agent = room.agent(ada)
    assert agent.log.dispatched < dead.seq

    room.files.faults.clear()
    room.settle(60)
    room.say(ada, 2)

    assert agent.log.dispatched > dead.seq
    assert len(errors_of(room)) == 1


def test_later_boots_do_not_repeat_the_error() -> None:
    room, ada = opened()
    key = dead_outcome(room, ada)

    for shown in ([error(key)], []):
        room.reopen()
        room.settle()
        assert room.runtime.report.redone == 0
        assert room.to_user() == shown
        room.run(room.runtime.acknowledge(f"{key}.result.error"))


def test_snapshots_neither_lose_the_error_nor_repeat_it() -> None:
    room = acting(options=SHORT)
    room.open()
    ada = room.create("Ada")
    room.files.fail("append", USER_LOG, errno.ENOSPC, sticky=True)
    key = dead_outcome(room, ada)
    begin_segments(room, ada)
    assert errors_of(room) == []

    room.files.faults.clear()
    for _ in range(3):
        room.reopen()
        room.settle()
        begin_segments(room, ada)

    assert number_of(room, USER) > 0
    assert errors_of(room) == [error(key)[1]]


def test_an_acknowledged_error_is_not_repeated_when_its_id_is_forgotten() -> None:
    room = acting(options=SHORT)
    room.open()
    ada, bob = room.create("Ada"), room.create("Bob")
    key = dead_outcome(room, ada)
    # The second turn has the watermark behind the dead letter.
    room.say(ada, 1)
    room.say(ada, 2)
    room.run(room.runtime.acknowledge(f"{key}.result.error"))
    before = number_of(room, USER)
    while number_of(room, USER) == before:
        begin_segments(room, bob)

    room.reopen()

    assert f"{key}.result.error" not in room.agent(USER).history.enqueued
    assert errors_of(room) == [error(key)[1]]


def test_a_boot_sends_the_error_that_an_older_version_did_not_send() -> None:
    room, ada = opened()
    key = dead_outcome(room, ada)
    # The second turn has the watermark behind the dead letter.
    room.say(ada, 1)
    room.say(ada, 2)
    before, _, last = room.read(USER_LOG).rstrip(b"\n").rpartition(b"\n")
    assert f"{key}.result.error".encode() in last
    room.write(USER_LOG, before + b"\n")

    for _ in range(2):
        room.reopen()
        room.settle()
        assert errors_of(room) == [error(key)[1]]


# -- ended agents ------------------------------------------------------------------------


def test_an_outcome_that_an_ended_agent_has_not_read_is_dropped() -> None:
    room, ada = opened()
    fail_later_turns(room, 1)
    key = perform(room, ada)
    assert room.named("Ada").pending == (f"{key}.result",)

    room.run(room.runtime.terminate(ada))
    room.reopen()
    room.settle()

    assert room.to_user() == []


def test_an_outcome_that_arrives_while_the_end_of_its_agent_is_written_is_dropped() -> None:
    room, ada = opened()
    performed, gate = asyncio.Event(), asyncio.Event()
    agent = room.agent(ada)

    async def hold() -> None:
        async with agent.log.lock:
            await gate.wait()

    room.effects.answers = [performed.wait]
    perform(room, ada)
    holding = room.world.loop.create_task(hold())
    room.settle()
    ending = room.world.loop.create_task(room.runtime.terminate(ada))
    room.settle()
    performed.set()
    room.settle()
    assert len(agent.log.queue) == 1
    gate.set()
    room.run(holding)
    room.run(ending)
    room.settle()

    assert room.events(agent.session_id)[-1] == "agent.terminated"
    assert room.to_user() == []
    room.check_no_failures()


def test_the_error_about_a_dead_outcome_outlives_the_end_of_its_agent() -> None:
    room, ada = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC, sticky=True)
    key = dead_outcome(room, ada)
    room.run(room.runtime.terminate(ada))
    assert room.to_user() == []

    room.reopen()

    assert room.to_user() == [error(key)]


def test_an_outcome_is_no_message_of_an_agent() -> None:
    room, ada = opened()
    perform(room, ada)
    assert room.agent(ada).history.senders == {USER}
