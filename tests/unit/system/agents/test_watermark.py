"""The watermark ``dispatched`` in the line of a turn: what recovery need not do again."""

from __future__ import annotations

import errno

from system.agents import event
from system.agents.snapshot_data import snapshot_data
from system.ports import Json
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem
from tests.unit.system.agents.boot import END
from tests.unit.system.agents.damage import remove, spoil
from tests.unit.system.agents.emitting import fail_when_asked
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    SECOND_NS,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
    opened,
    started,
)


def watermarks(room: Room, session_id: str) -> list[tuple[int, Json]]:
    """The number and the watermark of each turn in a log."""
    return [
        (line.seq, line.data.get("dispatched"))
        for line in room.lines(session_id)
        if line.event == event.TURN_COMPLETE
    ]


def test_a_turn_names_the_last_line_whose_outbox_is_dispatched() -> None:
    room, ada = opened()
    for payload in (script(("send_message", {"to": "USER", "payload": "hello"})), "and then?"):
        room.say(ada, payload)

    # Created twice, message, start; then the next message and its start.
    assert watermarks(room, room.session(ada)) == [(5, None), (9, 5)]


def test_a_line_whose_message_the_disk_refuses_stays_above_the_watermark() -> None:
    room, ada = opened()
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))
    room.say(ada, "and then?")
    assert watermarks(room, room.session(ada)) == [(5, None), (9, 4)]

    room.settle(seconds=5)
    room.say(ada, "it has arrived")
    room.say(ada, "that is known")

    assert room.to_user() == [("text", "hello")]
    assert [mark for _, mark in watermarks(room, room.session(ada))] == [None, 4, 4, 13]


def test_the_watermark_is_below_the_first_of_several_lines_that_are_not_dispatched() -> None:
    room, ada = opened()
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC, sticky=True)
    for payload in ("one", "two"):
        room.say(ada, script(("send_message", {"to": "USER", "payload": payload})))
    room.say(ada, "and then?")

    assert [mark for _, mark in watermarks(room, room.session(ada))] == [None, 4, 4]


def test_what_is_above_the_watermark_is_done_by_recovery(room: Room) -> None:
    turns = [
        completed("t1", outbox=[message("x", ADA, "USER", payload="first")]),
        completed("t2", outbox=[message("y", ADA, "USER", payload="second")], dispatched=2),
    ]
    room.put_session(ONE, [*created(ADA, "Ada"), *turns])

    room.open(start=False)

    assert [payload for _, payload in room.to_user()] == ["first", "second"]


def test_a_message_below_the_watermark_that_damage_has_taken_is_written_again(room: Room) -> None:
    turns = [
        completed("t1", outbox=[message("x", ADA, "USER", payload="first")]),
        completed("t2", dispatched=3),
    ]
    room.put_session(ONE, [*created(ADA, "Ada"), *turns])

    room.open(start=False)

    assert room.to_user() == [("text", "first")]


def test_a_child_below_the_watermark_that_is_gone_is_not_created_again() -> None:
    # M1: it had ended, had sent nothing, and came back alive at the next boot.
    room, ada, bob = parent_and_child()
    session_id = room.session(bob)
    room.run(room.runtime.terminate(bob))
    room.say(ada, "a turn that passes the spawn")
    remove(room, session_id)

    runtime = room.reopen()
    room.settle()

    assert [agent.agent_id for agent in runtime.view().agents] == [ada]
    assert runtime.report.redone == 0
    (problem,) = runtime.report.problems
    assert (problem.session_id, problem.problem) == (session_id, Problem.LOG_DAMAGED)
    assert not room.exists(f"agents/{session_id}")


def test_a_child_below_the_watermark_whose_log_is_empty_is_not_created_again() -> None:
    room, ada, bob = parent_and_child()
    session_id = room.session(bob)
    room.run(room.runtime.terminate(bob))
    room.say(ada, "a turn that passes the spawn")
    remove(room, session_id)
    room.write(f"agents/{session_id}/events.jsonl", b"")

    runtime = room.reopen(start=False)

    assert [problem.session_id for problem in runtime.report.problems] == [session_id]
    assert room.exists(f"agents/{session_id}/events.jsonl")


def test_a_child_above_the_watermark_is_created(room: Room) -> None:
    child: Json = {
        "agent_id": BOB, "session_id": "2" * 32, "name": "Bob", "instructions": "work",
        "provider": "scripted", "model": "", "bootstrap_id": "boot",
    }  # fmt: skip
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t1", spawned=[child])])

    runtime = room.open(start=False)

    assert [agent.name for agent in runtime.view().agents] == ["Ada", "Bob"]


def test_a_recovery_passes_what_it_has_done_itself() -> None:
    room, ada = opened()
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))

    room.reopen()
    room.say(ada, "a turn in the next boot")

    assert watermarks(room, room.session(ada))[-1][1] == room.lines(room.session(ada))[5].seq


def test_a_recovery_passes_what_it_has_applied_itself() -> None:
    room, ada = opened()
    room.run(room.runtime._orchestrator.durable.opened())
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    room.say(ada, script(("remind_me", {"delay_ns": SECOND_NS, "payload": "later"})))
    injector.remove()

    assert room.reopen().report.applied == 1
    room.say(ada, "a turn in the next boot")

    assert watermarks(room, room.session(ada))[-1][1] == room.lines(room.session(ada))[5].seq


def cut_to(room: Room, session_id: str, lines: int) -> None:
    """Let a log lose its end to damage that leaves no trace in it."""
    content = room.read(log_of(session_id)).splitlines(keepends=True)
    assert len(content) > lines
    room.write(log_of(session_id), b"".join(content[:lines]))


def test_a_line_behind_a_lost_end_is_not_mistaken_for_a_line_that_a_recipient_has_passed() -> None:
    room, ada, bob = parent_and_child()
    for number in range(3):
        room.say(ada, script(("send_message", {"to": "Bob", "payload": number})))
    agent, history = room.agent(bob), room.agent(ada).history
    session_id = room.session(ada)
    mark = {session_id: history.dispatched}
    room.run(agent.log.begin_segment(lambda: snapshot_data(agent.history, [], [], mark, set())))
    room.kill()
    cut_to(room, session_id, 4)

    room.open()
    name = f"{room.session(bob)}/events.1.jsonl"
    room.files.fail("append", name, errno.ENOSPC, sticky=True)
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "after the damage"})))
    turns = room.named("Bob").turns
    room.reopen()
    room.settle()

    assert room.lines(session_id)[4].seq > history.dispatched
    assert room.named("Bob").turns == turns + 1
    assert room.shown() == [("text", "after the damage")]


def test_a_line_behind_a_lost_end_is_not_mistaken_for_a_line_that_was_applied() -> None:
    room, ada = opened()
    for payload in ("one", "two"):
        room.say(ada, script(("remind_me", {"delay_ns": SECOND_NS, "payload": payload})))
    room.settle(1)
    room.kill()
    cut_to(room, room.session(ada), 4)

    room.open()
    room.say(ada, script(("remind_me", {"delay_ns": SECOND_NS, "payload": "after the damage"})))
    room.settle(1)

    assert room.shown() == [("reminder", "after the damage")]


def test_a_message_that_damage_has_taken_from_an_ended_recipient_is_not_answered_with_an_error(
    room: Room,
) -> None:
    turns = [
        completed("t1", outbox=[message("x", ADA, BOB, payload="first")]),
        completed("t2", dispatched=3),
    ]
    room.put_session(ONE, [*created(ADA, "Ada"), *turns])
    read = [enqueued("x", ADA, BOB), started("s", "x"), completed("s", "x"), END]
    room.put_session(TWO, [*created(BOB, "Bob"), *read], SessionState.TERMINATED)
    for word in ("message.enqueued", "turn.start", "turn.complete"):
        spoil(room, TWO, word)

    runtime = room.open(start=False)

    assert runtime.report.missing == {TWO: ((3, 5),)}
    assert room.named("Ada").pending == ()
