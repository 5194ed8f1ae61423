"""Known bugs that a runtime of agents must not have, by their ids in ``docs/planted-bugs.md``.

Every test goes through the smallest schedule of the bug, or writes the files that it leaves.
Those of the storage stand in ``tests/unit/system/test_known_bugs.py``.
"""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.agents import event
from system.agents.message import USER
from system.ports import Json, JsonObject
from system.sessions.session import SessionState
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    SECOND_NS,
    THREE,
    TWO,
    Events,
    Room,
    completed,
    created,
    enqueued,
    message,
    record_of,
    spawned,
    started,
)

Call = tuple[str, JsonObject]

SPAWN: Call = ("spawn_agent", {"name": "Bob", "instructions": "work"})


def spawning(*, outbox: tuple[Json, ...] = ()) -> Events:
    """The log of a parent whose turn has spawned Bob, and then the power failed."""
    child: Json = [spawned(BOB, TWO, "Bob")]
    turn = completed("t1", "m0", spawned=child, outbox=list(outbox))
    return [*created(ADA, "Ada"), enqueued("m0", USER, ADA), started("t1", "m0"), turn]


def test_bug_r4_a_message_that_arrives_during_a_turn_is_shown_before_it_is_delivered(
    room: Room,
) -> None:
    room.open()
    ada = room.create()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, "first")
    room.say(ada, "meanwhile")
    gate.set()
    room.settle()
    assert [room.shown(turn) for turn in (0, 1)] == [[("text", "first")], [("text", "meanwhile")]]
    room.reopen()
    assert room.named("Ada").pending == ()
    room.check_no_failures()


@pytest.mark.parametrize("left", [None, created(BOB, "Bob", ONE)])
def test_bug_r5_a_message_to_a_child_of_the_same_turn_survives(
    room: Room, left: Events | None
) -> None:
    room.put_session(ONE, spawning(outbox=(message("m1", ADA, BOB, payload="hello"),)))
    if left is not None:
        room.put_session(TWO, left)
    room.open()
    room.settle()
    assert room.shown() == [("bootstrap", "work"), ("text", "hello")]
    room.check_no_failures()


def test_bug_r6_what_the_runtime_itself_says_is_whole_after_a_crash(room: Room) -> None:
    room.open()
    ada = room.create()
    room.say(ada, script(SPAWN, ("gate", {"name": "Bob"}), ("subscribe", {"name": "Bob"})))
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "unseen"})))
    unseen = str(room.provider.results[-1]["message_id"])
    bob = room.named("Bob")
    room.run(room.runtime.terminate(bob.agent_id))
    room.reopen(start=False)
    reported = {
        str(line.data["kind"]): line.data
        for line in room.lines(room.named("Ada").session_id)
        if line.event == event.MESSAGE_ENQUEUED
    }
    reason = "the recipient has ended"
    assert reported["error"]["payload"] == {"reason": reason, "message_id": unseen}
    assert (reported["error"]["reply_to"], reported["error"]["sender"]) == (unseen, bob.agent_id)
    assert reported["notice"]["payload"] == {
        "event": "terminated", "agent_id": bob.agent_id, "name": "Bob",
    }  # fmt: skip
    assert all(data["timestamp"] for data in reported.values())


def test_bug_r6_a_permit_that_was_not_used_is_there_after_a_crash(room: Room) -> None:
    room.open()
    ada = room.create()
    permit: Call = ("permit_turn", {"name": "Bob"})
    room.say(ada, script(SPAWN, ("gate", {"name": "Bob"}), permit, permit))
    assert (room.named("Bob").gated, room.named("Bob").permits) == (True, 1)
    room.reopen()
    assert (room.named("Bob").gated, room.named("Bob").permits) == (True, 1)
    room.say(room.named("Bob").agent_id, "go")
    room.say(room.named("Bob").agent_id, "and again")
    assert (room.named("Bob").turns, room.named("Bob").permits) == (2, 0)
    room.check_no_failures()


def test_bug_r7_an_answer_that_breaks_off_is_no_completed_turn(room: Room) -> None:
    room.open()
    ada = room.create()
    room.provider.pieces = ["half an"]
    room.provider.fail("sent")
    room.say(ada, "question")
    session_id = room.named("Ada").session_id
    assert event.TURN_COMPLETE not in room.events(session_id)
    assert event.TURN_FAILED in room.events(session_id)
    room.reopen()
    room.settle()
    assert room.named("Ada").turns == 1
    assert room.shown() == [("text", "question")]
    room.check_no_failures()


def test_bug_r10_a_message_to_the_operator_survives(room: Room) -> None:
    room.open()
    room.say(room.create(), script(("send_message", {"to": USER, "payload": "look"})))
    assert room.to_user() == [("text", "look")]
    room.reopen(start=False)
    assert room.to_user() == [("text", "look")]


def test_bug_r12_a_completion_is_answered_once_wherever_the_crash_comes(room: Room) -> None:
    room.open()
    ada = room.create()
    room.provider.hooks["sent"] = asyncio.Event().wait
    room.say(ada, script(("complete", {"result": 42})))
    assert room.provider.results == [{}]
    room.provider.hooks.clear()
    room.reopen(start=False)
    assert room.to_user() == []
    room.start()
    room.settle()
    assert room.to_user() == [("response", 42)]
    room.reopen()
    assert (room.to_user(), room.named("Ada").alive) == ([("response", 42)], False)
    room.check_no_failures()


def test_bug_r13_a_child_without_its_first_message_is_given_it_and_runs(room: Room) -> None:
    room.put_session(ONE, spawning())
    room.put_session(TWO, created(BOB, "Bob", ONE))
    room.open()
    room.settle()
    assert room.shown() == [("bootstrap", "work")]
    assert room.named("Bob").turns == 1
    room.check_no_failures()


def test_bug_r15_a_stale_blob_is_not_trusted(room: Room) -> None:
    room.open()
    ada = room.create()
    room.say(ada, "one")
    room.run(room.runtime.suspend(ada))
    room.say(ada, "two")
    room.say(ada, "three")
    room.reopen()
    room.say(ada, "four")
    assert room.provider.blobs == [b"blob of c1", b""]
    assert len(room.provider.openings[-1].history) == 3
    room.check_no_failures()


def test_bug_r16_a_child_that_a_turn_has_spawned_exists(room: Room) -> None:
    room.open()
    ada = room.create()
    room.files.fail("replace", "session.json", errno.ENOSPC)
    room.say(ada, script(SPAWN))
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    room.reopen()
    room.settle()
    bob = room.named("Bob")
    assert (bob.agent_id, bob.parent_id) == (room.provider.results[0]["agent_id"], ada)
    assert room.shown() == [("bootstrap", "work")]
    room.check_no_failures()


def test_bug_r17_a_conversation_is_taken_up_by_its_name_after_any_crash(room: Room) -> None:
    room.open()
    ada = room.create()
    room.say(ada, script(SPAWN))
    room.provider.hooks["send"] = asyncio.Event().wait
    room.reopen()
    for name in ("Ada", "Bob"):
        room.say(room.named(name).agent_id, "still there?")
    room.provider.hooks.clear()
    room.reopen()
    room.settle()
    restored = [call for call in room.provider.asked if call.startswith("restore")]
    assert sorted(set(restored)) == ["restore c1", "restore c2"]
    assert room.provider.kept == ["c1", "c2"]
    assert [room.named(name).turns for name in ("Ada", "Bob")] == [2, 2]
    room.check_no_failures()


def test_bug_r20_a_slot_is_kept_until_the_record_says_that_it_is_free(room: Room) -> None:
    room.open()
    ada = room.create()
    room.say(ada, "one")
    room.files.fail("replace", record_of(room.session(ada)), errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        room.run(room.runtime.suspend(ada))
    assert "stop c1" not in room.provider.asked
    room.say(ada, "two")
    assert not [call for call in room.provider.asked if call.startswith("restore")]
    room.run(room.runtime.suspend(ada))
    assert "stop c1" in room.provider.asked
    assert record_state(room) is SessionState.SUSPENDED
    room.check_no_failures()


def test_bug_r21_reminders_and_subscriptions_survive(room: Room) -> None:
    room.open()
    ada = room.create()
    remind: Call = ("remind_me", {"delay_ns": 10 * SECOND_NS, "payload": "now"})
    room.say(ada, script(SPAWN, ("subscribe", {"name": "Bob"}), remind))
    room.reopen()
    room.run(room.runtime.terminate(room.named("Bob").agent_id))
    room.settle()
    assert [kind for kind, _ in room.shown()] == ["notice"]
    room.settle(seconds=10)
    assert room.shown() == [("reminder", "now")]
    room.check_no_failures()


def test_bug_r21_the_record_of_an_agent_that_has_ended_says_so(room: Room) -> None:
    turn = completed("t1", "m0", terminate=True)
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m0", USER, ADA), turn])
    room.open()
    assert record_state(room) is SessionState.TERMINATED


def test_bug_r21_a_log_without_a_record_that_is_nobodys_is_collected(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada")[:1], state=None)
    room.open()
    assert room.runtime.report.orphans == [ONE]
    assert not room.exists(f"agents/{ONE}")


def test_bug_r22_one_agent_that_does_not_fit_stops_no_other(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, created(BOB, "Ada"))
    room.put_session(THREE, created("c" * 32, "Cleo", "f" * 32))
    room.open()
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada", "Ada", "Cleo"]
    assert room.runtime.report.detached == [THREE]


def test_bug_r22_agents_wake_in_one_order_however_they_stand_on_the_disk() -> None:
    orders = []
    for sessions in ((ONE, TWO, THREE), (THREE, ONE, TWO)):
        room = Room()
        for session_id in sessions:
            agent_id = session_id[::-1].replace("1", "a")
            first = enqueued(f"m{session_id[0]}", USER, agent_id, payload=session_id[0])
            room.put_session(session_id, [*created(agent_id, f"agent {session_id[0]}"), first])
        room.open()
        room.settle()
        orders.append(room.provider.prompts)
    assert len(orders[0]) == 3
    assert orders[0] == orders[1]


def record_state(room: Room) -> SessionState:
    """The record of the only agent."""
    session_id = room.runtime.view().agents[0].session_id
    return room.runtime._orchestrator.store.load(session_id).state
