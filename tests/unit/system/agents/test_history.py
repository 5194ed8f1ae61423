"""The fold of a log: what each event makes of a session, and that all others are counted."""

from __future__ import annotations

import pytest

from system.agents import event
from system.agents.history import History
from system.agents.session_data import AgentData, SessionData
from system.agents.snapshot_data import snapshot_data
from system.agents.turn_complete import Reminder
from system.ports import Exchange, Json, JsonObject
from system.storage.line import Line
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    ONE,
    Events,
    completed,
    created,
    enqueued,
    message,
    spawned,
    started,
)


def folded(*events: tuple[str, JsonObject]) -> History:
    return History.from_lines(
        Line(seq, f"time {seq}", ONE, name, data) for seq, (name, data) in enumerate(events, 1)
    )


def said(message_id: str, kind: str = "text", payload: Json = None) -> tuple[str, JsonObject]:
    return enqueued(message_id, BOB, ADA, kind, payload)


def control(name: str, control_id: str) -> tuple[str, JsonObject]:
    return name, {"control_id": control_id, "by": BOB}


def ended(*returned: str) -> tuple[str, JsonObject]:
    return event.AGENT_TERMINATED, {
        "agent_id": ADA, "reason": "operator", "returned": list(returned),
    }  # fmt: skip


def recorded(turn_id: str, execution_id: str) -> tuple[str, JsonObject]:
    name, data = started(turn_id)
    return name, {**data, "execution_id": execution_id, "execution_entry": 1}


def failed(turn_id: str) -> tuple[str, JsonObject]:
    return event.TURN_FAILED, {"turn_id": turn_id, "reason": "no"}


def test_a_snapshot_counts_the_presentations_of_messages_that_wait() -> None:
    history = folded(*created(ADA, "Ada"), said("m"), started("t", "m"), failed("t"))
    data = snapshot_data(history, (), (), {}, frozenset())

    again = History.from_lines([Line(history.seq + 1, "", ONE, event.LOG_SNAPSHOT, data)])

    assert again.presentations == history.presentations == {"m": 1}


def test_the_next_execution_retries_the_last_one_that_was_recorded() -> None:
    history = folded(recorded("t", "exec-1"), failed("t"), started("u"), failed("u"))
    assert history.retry_of == "exec-1"

    history = folded(recorded("t", "exec-1"), failed("t"), started("u"), completed("u"))
    assert history.retry_of is None


def test_an_empty_log_is_a_session_of_which_nothing_is_known() -> None:
    history = folded()

    assert (history.session, history.agent, history.ended, history.last_ts) == (None, None, "", "")


def test_the_first_lines_say_who_the_agent_is_and_who_runs_it() -> None:
    history = folded(*created(ADA, "Ada", parent=ONE, identity="c1"))

    assert history.session == SessionData("scripted", "", "")
    assert history.agent == AgentData(ADA, "Ada", ONE, "", None)
    assert history.identity == "c1"
    assert history.last_ts == "time 2"


def test_a_root_has_no_parent_and_may_have_a_request_id() -> None:
    data: JsonObject = {
        "agent_id": ADA, "name": "Ada", "parent_session_id": None, "instructions": "be kind",
        "request_id": "r",
    }  # fmt: skip

    assert folded((event.AGENT_CREATED, data)).agent == AgentData(ADA, "Ada", None, "be kind", "r")


def test_a_restored_session_has_a_new_identity() -> None:
    restored: JsonObject = {"provider": "scripted", "model": "", "identity": "c2"}

    history = folded(*created(ADA, "Ada", identity="c1"), (event.SESSION_RESTORED, restored))

    assert history.identity == "c2"


def test_a_message_is_pending_in_the_order_of_the_lines() -> None:
    history = folded(said("m2"), said("m1"))

    assert list(history.pending) == ["m2", "m1"]
    assert history.knows("m1")
    assert not history.knows("m3")


def test_a_delivered_message_is_pending_no_more_and_still_known() -> None:
    history = folded(said("m"), (event.MESSAGE_DELIVERED, {"message_id": "m"}))

    assert list(history.pending) == []
    assert history.knows("m")


def test_the_sender_of_a_dead_letter_must_be_informed() -> None:
    history = folded(said("m"), (event.MESSAGE_DEAD, {"message_id": "m", "reason": "poison"}))

    assert list(history.pending) == []
    assert [(lost.message.message_id, *lost[1:]) for lost in history.unreachable.values()] == [
        ("m", "poison", 2)
    ]


def test_every_start_of_a_turn_counts_as_a_presentation() -> None:
    history = folded(said("m"), started("t1", "m"), started("t2", "m"))

    assert history.presentations == {"m": 2}
    assert list(history.open_turns) == ["t1", "t2"]


def test_a_presentation_can_be_taken_back() -> None:
    failed: JsonObject = {"turn_id": "t", "reason": "no space", "uncounted": True}
    history = folded(said("m"), started("t", "m"), (event.TURN_FAILED, failed))

    assert history.presentations == {"m": 0}
    assert history.open_turns == {}


def test_a_failed_turn_is_not_open_and_its_messages_stay() -> None:
    failed: JsonObject = {"turn_id": "t", "reason": "no answer"}

    history = folded(said("m"), started("t", "m"), (event.TURN_FAILED, failed))

    assert history.open_turns == {}
    assert list(history.pending) == ["m"]
    assert history.turn_count == 0


def test_a_completed_turn_delivers_exactly_what_it_presented() -> None:
    history = folded(said("m1"), said("m2"), started("t", "m1"), completed("t", "m1"))

    assert list(history.pending) == ["m2"]
    assert (history.turn_count, list(history.last_turns)) == (1, ["t"])
    assert history.exchanges == [Exchange("[]", "yes")]
    assert history.open_turns == {}
    assert history.presentations == {}


def test_a_completed_turn_keeps_its_outbox_and_who_answered() -> None:
    turn = completed(
        "t", outbox=[message("x", ADA, BOB)], provider={"name": "scripted", "identity": "c9"}
    )

    history = folded(turn)

    assert [turn.data() for turn in history.outbox.values()] == [turn[1]]
    assert history.identity == "c9"


def test_a_turn_without_its_start_has_an_empty_prompt() -> None:
    assert folded(completed("t")).exchanges == [Exchange("", "yes")]


def test_metadata_of_later_turns_replaces_that_of_earlier_ones() -> None:
    history = folded(
        completed("t1", metadata={"mood": "glad", "plan": 1}),
        completed("t2", metadata={"mood": "sad"}),
    )

    assert history.metadata == {"mood": "sad", "plan": 1}


def test_subscriptions_last_until_they_are_given_up() -> None:
    added: Events = [
        completed("t1", subscribed=[
            {"subscription_id": "s1", "target": BOB}, {"subscription_id": "s2", "target": BOB},
        ]),
        completed("t2", unsubscribed=["s1", "unknown"]),
    ]  # fmt: skip

    assert folded(*added).subscriptions == {"s2": BOB}


def test_a_reminder_is_active_until_it_is_cancelled_or_has_come() -> None:
    reminders: Events = [
        completed("t1", reminders=[
            {"reminder_id": "r1", "due_ns": 1, "payload": "one"},
            {"reminder_id": "r2", "due_ns": 2, "payload": "two"},
            {"reminder_id": "r3", "due_ns": 3, "payload": "three"},
        ]),
        completed("t2", cancelled=["r2"]),
        said("r1", "reminder"),
    ]  # fmt: skip

    history = folded(*reminders)

    assert history.reminders == {"r3": Reminder("r3", 3, "three")}
    assert list(history.pending) == ["r1"]


def test_a_gated_agent_is_gated_until_it_is_ungated() -> None:
    gated = folded(control(event.GATE, "g"))
    again = folded(control(event.GATE, "g"), control(event.UNGATE, "u"))

    assert (gated.gated, again.gated) == (True, False)
    assert again.knows("g")
    assert again.knows("u")


def test_a_turn_of_a_gated_agent_uses_one_permit() -> None:
    permits: Events = [
        control(event.GATE, "g"), control(event.PERMIT_TURN, "p1"),
        control(event.PERMIT_TURN, "p2"), completed("t", permitted=True),
    ]  # fmt: skip

    assert folded(*permits).permits == 1


def test_permits_end_with_the_gate_and_never_fall_below_none() -> None:
    over = folded(control(event.PERMIT_TURN, "p"), control(event.UNGATE, "u"))
    below = folded(completed("t", permitted=True))

    assert (over.permits, below.permits) == (0, 0)


def test_an_open_turn_knows_whether_it_will_use_up_a_permit() -> None:
    history = folded(
        control(event.PERMIT_TURN, "p1"), started("while the gate is open"),
        control(event.GATE, "g1"), started("before it is opened"),
        control(event.UNGATE, "u1"), started("after it was opened"),
        control(event.GATE, "g2"), started("without a permit"),
        control(event.PERMIT_TURN, "p2"), started("with a permit"),
    )  # fmt: skip

    permitted = [key for key, turn in history.open_turns.items() if turn.permitted]
    assert permitted == ["with a permit"]
    assert len(history.open_turns) == 5


def test_the_children_whose_responses_are_here_have_completed() -> None:
    history = folded(said("m1", "response"), enqueued("m2", EVE, ADA))

    assert history.completed_children == {BOB}


def test_the_notice_of_a_recovery_settles_the_turns_that_were_lost() -> None:
    payload: Json = {"notice": "recovery", "lost_turns": ["t"]}

    history = folded(started("t"), started("later"), said("t.lost", "system", payload))

    # The other one has begun before the notice could be written.
    assert list(history.open_turns) == ["later"]


def test_a_completing_turn_ends_the_agent_and_returns_what_it_names() -> None:
    history = folded(
        said("seen"), said("late"), completed("t", "seen", terminate=True, returned=["late"])
    )

    assert history.ended == "completed"
    assert not history.termination_logged
    assert list(history.pending) == []
    assert list(history.unreachable) == ["late"]


def test_an_end_by_the_operator_returns_everything_that_was_pending() -> None:
    history = folded(said("m"), ended("m", "unknown"))

    assert history.ended == "operator"
    assert history.termination_logged
    assert [(lost.message.message_id, lost.reason) for lost in history.unreachable.values()] == [
        ("m", "the recipient has ended")
    ]


def test_the_line_after_a_completing_turn_does_not_end_the_agent_twice() -> None:
    history = folded(completed("t", terminate=True), ended())

    assert history.ended == "completed"
    assert history.termination_logged


def test_nothing_waits_for_an_agent_that_has_ended() -> None:
    waiting = completed(
        "t",
        subscribed=[{"subscription_id": "s", "target": BOB}],
        reminders=[{"reminder_id": "r", "due_ns": 1, "payload": None}],
    )

    history = folded(waiting, ended())

    assert (history.subscriptions, history.reminders) == ({}, {})


@pytest.mark.parametrize("unknown", ["tool.call", "turn.paused", ""])
def test_an_unknown_event_is_counted_and_changes_nothing_else(unknown: str) -> None:
    history = folded(said("m"), (unknown, {"message_id": "m"}))

    assert history.ignored == 1
    assert list(history.pending) == ["m"]


def test_the_size_of_a_suspended_state_is_for_people() -> None:
    history = folded((event.SUSPEND_RESULT, {"state_size": 4}))

    assert history.ignored == 0


def test_members_that_should_be_lists_of_objects_and_are_not_are_an_empty_outbox() -> None:
    history = folded(completed("t", subscribed="s", reminders=None, metadata=[], cancelled=3))

    assert (history.subscriptions, history.reminders, history.metadata) == ({}, {}, {})


def test_a_turn_whose_provider_is_no_object_is_of_another_version() -> None:
    with pytest.raises(KeyError):
        folded(*created(ADA, "Ada", identity="c1"), completed("t", provider=None))


def test_the_watermark_of_a_turn_empties_the_outboxes_of_the_lines_up_to_it() -> None:
    lines: Events = [
        completed("t1", outbox=[message("x", ADA, BOB)]),
        completed("t2"),
        completed("t3", outbox=[message("y", ADA, BOB)], dispatched=1),
        said("m"),
        (event.MESSAGE_DEAD, {"message_id": "m", "reason": "poison"}),
    ]

    def undispatched(*following: tuple[str, JsonObject]) -> tuple[list[int], list[str]]:
        history = folded(*lines, *following)
        history.drop_dispatched()
        return list(history.outbox), list(history.unreachable)

    assert undispatched() == ([3], ["m"])
    assert undispatched(completed("t4", dispatched=4)) == ([], ["m"])
    assert undispatched(completed("t4", dispatched=5)) == ([], [])


def test_a_watermark_never_goes_back() -> None:
    assert folded(completed("t1"), completed("t2", dispatched=1), completed("t3")).dispatched == 1


def test_a_child_is_known_also_when_its_outbox_entry_was_dispatched() -> None:
    child = spawned(BOB, "5" * 32, "Bob")

    history = folded(completed("t1", spawned=[child]), completed("t2", dispatched=1))
    history.drop_dispatched()

    assert (history.outbox, list(history.children)) == ({}, ["5" * 32])


def test_a_spawn_stays_in_the_outbox_as_the_line_has_it() -> None:
    child = spawned(BOB, "5" * 32, "Bob")

    (turn,) = folded(completed("t", spawned=[child])).outbox.values()

    assert [spawn.data() for spawn in turn.outbox.spawned] == [child]
