"""The laws inside one log, case by case; and what a log may well hold."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.violations import (
    BrokenTree,
    DuplicateCompletion,
    GateIgnored,
    LostErrorMessage,
    SkippedMessage,
    WriteAfterEnd,
)
from oracles.violation import Duplicated, InvalidState, Violation
from tests.unit.oracles.runtime.story import Break, Data, Story, hexed
from tests.unit.oracles.runtime.team import (
    Wrong,
    lose_turn,
    name_of,
    receive,
    run_gated,
    spawn,
    team,
)

WRONG = Wrong()
BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


def complete_unread(story: Story) -> Data:
    """The worker completes before it has read a message of the operator; return the error."""
    story.send("m9", "worker", "wait")
    story.move("worker", "message.enqueued", 3, -5)
    story.at("worker", "turn.complete")["returned"] = ["m9"]
    return receive(
        story, "user", "error", message_id="m9.error", sender=WORKER, reply_to="m9",
        payload={"reason": "it has ended", "message_id": "m9"},
    )  # fmt: skip


def control(story: Story, turn_id: str, shown: str, *ops: str) -> None:
    """The boss gives its idle child these orders, and they arrive."""
    controls = [
        {"control_id": f"{turn_id}-{n}", "target": IDLE, "op": op} for n, op in enumerate(ops)
    ]
    calls: list[Any] = [(op, {"name": "idle"}, {}) for op in ops]
    story.turn("boss", turn_id, shown, controls=controls, calls=calls)
    for each in controls:
        story.add("idle", f"tool.{each['op']}", control_id=each["control_id"], by=BOSS)


def gate_again(story: Story) -> None:
    run_gated(story, 1)
    control(story, "t4", "r1", "ungate", "gate")
    story.send("n9", "idle", 9)
    story.turn("idle", "g9", "n9")


def run_ungated(story: Story) -> None:
    control(story, "t4", "r1", "ungate")
    story.turn("idle", "g0", "boot-idle")
    for number in range(2):
        story.send(f"n{number}", "idle", number)
        story.turn("idle", f"g{number + 1}", f"n{number}")


def ungate_during_a_permitted_turn(story: Story) -> None:
    """Nobody needs the permit any more, and the turn says so."""
    control(story, "t4", "r1", "ungate")
    story.turn("idle", "g0", "boot-idle")
    story.move("idle", "tool.ungate", 0, 6)


def end_all(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.terminate("boss", "r1")


def lose_notes(story: Story) -> None:
    """A crash takes what had no barrier of its own: who was delivered to."""
    del story.logs["boss"][-3:]


def lose_turn_of_the_ended(story: Story) -> None:
    story.start("idle", "g0", "boot-idle")
    story.terminate("idle", "boot-idle")


def take_a_free_name(story: Story) -> None:
    story.root("other")
    story.at("other", "agent.created")["name"] = "worker"
    story.told[-2] = lambda s: s.operator.creates.begin(
        "r-other", "worker", "be other", "scripted", "m"
    )


RIGHT: dict[str, Break] = {
    "a line of an event that concerns nobody": lambda s: s.add(
        "idle", "suspend.result", state_size=1
    ),
    "an agent completed, and a message came back": complete_unread,
    "a gate was lifted, closed again, and overlooked once more": gate_again,
    "an agent whose gate was lifted ran and ran": run_ungated,
    "a gate was lifted during a permitted turn": ungate_during_a_permitted_turn,
    "all agents ended, the children first": end_all,
    "the notes of a turn were lost": lose_notes,
    "the beginning of a turn was damaged": lambda s: s.drop("boss", "turn.start", 1),
    "nobody told an agent of a lost turn that has ended": lose_turn_of_the_ended,
    "a name of who has ended is given again": take_a_free_name,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_what_may_happen_is_right(change: Break) -> None:
    story = team()
    change(story)
    story.settle()


@WRONG.caught_by(LostErrorMessage)
def sender_is_not_told_that_the_recipient_has_completed(story: Story) -> None:
    complete_unread(story)
    story.logs["user"].pop()


@WRONG.caught_by(InvalidState)
def agent_is_created_without_a_session(story: Story) -> None:
    story.logs["idle"][0].event = "suspend.result"


@WRONG.caught_by(InvalidState)
def record_is_that_of_another_session(story: Story) -> None:
    story.records["boss"]["session_id"] = hexed("idle")


@WRONG.caught_by(BrokenTree)
def parent_is_no_agent(story: Story) -> None:
    story.records["orphan"] = {"session_id": hexed("orphan"), "state": "SUSPENDED"}
    story.create("child", parent="orphan")


@WRONG.caught_by(BrokenTree)
def agent_stands_below_a_circle(story: Story) -> None:
    story.create("able", parent="boss")
    story.at("boss", "agent.created")["parent_session_id"] = hexed("idle")


@WRONG.caught_by(Duplicated)
def two_turns_under_way_have_one_id(story: Story) -> None:
    story.start("boss", "t4", "r1")
    story.start("boss", "t4", "r1")


@WRONG.caught_by(SkippedMessage)
def newer_message_is_shown_first_in_a_turn_that_fails(story: Story) -> None:
    story.send("m7", "boss", "late")
    story.start("boss", "t4", "m7")
    story.add("boss", "turn.failed", turn_id="t4", reason="timeout")


@WRONG.caught_by(WriteAfterEnd)
def ended_agent_commits_a_turn(story: Story) -> None:
    again = story.at("worker", "turn.complete") | {"turn_id": "t9", "terminate": False}
    story.add("worker", "turn.complete", **again)


@WRONG.caught_by(DuplicateCompletion)
def completed_agent_is_ended_by_the_operator(story: Story) -> None:
    story.at("worker", "agent.terminated")["reason"] = "operator"


@WRONG.caught_by(InvalidState)
def agent_ends_for_a_reason_of_its_own(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.at("idle", "agent.terminated")["reason"] = "bored"


@WRONG.caught_by(WriteAfterEnd)
def ended_agent_is_gated(story: Story) -> None:
    story.add("worker", "tool.gate", control_id="c9", by=BOSS)


@WRONG.caught_by(GateIgnored)
def gated_agent_runs_on_when_it_is_gated_once_more(story: Story) -> None:
    run_gated(story, 1)
    control(story, "t4", "r1", "gate")
    story.send("n9", "idle", 9)
    story.turn("idle", "g9", "n9")


@WRONG.caught_by(GateIgnored)
def gated_agent_uses_up_no_permit(story: Story) -> None:
    story.turn("idle", "g0", "boot-idle")


@WRONG.caught_by(GateIgnored)
def turn_uses_up_a_permit_that_has_ended_with_its_gate(story: Story) -> None:
    ungate_during_a_permitted_turn(story)
    story.at("idle", "turn.complete")["permitted"] = True


@WRONG.caught_by(GateIgnored)
def turn_uses_up_a_permit_of_an_earlier_gate(story: Story) -> None:
    control(story, "t4", "r1", "ungate", "gate")
    story.turn("idle", "g0", "boot-idle", permitted=True)


@WRONG.caught_by(GateIgnored)
def turn_uses_up_a_permit_that_came_after_it_began(story: Story) -> None:
    story.turn("idle", "g0", "boot-idle", permitted=True)
    story.move("idle", "tool.permit_turn", 0, 5)


@WRONG.caught_by(InvalidState)
def turn_is_committed_that_has_failed(story: Story) -> None:
    story.turn("boss", "t4", "r1")
    story.add("boss", "turn.failed", turn_id="t4", reason="timeout")
    story.move("boss", "turn.failed", 0, -2)


@WRONG.caught_by(Duplicated)
def two_messages_have_one_id(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["message_id"] = "m3"


@WRONG.caught_by(Duplicated)
def two_bootstraps_have_one_id(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["spawned"] = [spawn("worker")]


@WRONG.caught_by(Duplicated)
def two_controls_have_one_id(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["controls"][0]["control_id"] = "c2"


@WRONG.caught_by(Duplicated)
def two_subscriptions_have_one_id(story: Story) -> None:
    subscribed = story.at("boss", "turn.complete")["subscribed"]
    story.at("boss", "turn.complete", 1)["subscribed"] = subscribed


@pytest.mark.parametrize(("change", "violation"), WRONG.stories, ids=name_of)
def test_what_may_not_happen_is_noticed(change: Break, violation: type[Violation]) -> None:
    WRONG.judge(change, violation)


def test_a_violation_inside_a_log_names_the_line() -> None:
    story = team()
    story.start("boss", "t3", "r1")
    with pytest.raises(Duplicated) as caught:
        story.settle()
    assert caught.value.evidence["path"] == f"agents/{hexed('boss')}/events.jsonl"
    line = caught.value.evidence["line"]
    assert isinstance(line, bytes)
    assert b'"turn_id":"t3"' in line


def test_the_first_violation_of_a_log_that_grows_stays() -> None:
    story, reader = team(), SnapshotReader()
    story.start("boss", "t3", "r1")
    before = reader.read(story.files()).agents[BOSS]
    story.add("boss", "message.dead", message_id="m2", reason="too often")
    story.send("m9", "boss", 1)
    after = reader.read(story.files()).agents[BOSS]
    assert isinstance(after.violation, Duplicated)
    assert list(after.pending) == list(before.pending)


def test_a_log_that_broke_a_law_is_not_kept() -> None:
    story, reader = team(), SnapshotReader()
    story.start("boss", "t3", "r1")
    reader.read(story.files())
    story.send("m9", "boss", 1)
    reader.read(story.files())
    reader.read(team().files())
    after = reader.read(story.files()).agents[BOSS]
    assert isinstance(after.violation, Duplicated)
    assert after.log.raw == story.files()[after.path]


def test_a_look_that_was_taken_keeps_its_overlooked_gates() -> None:
    story, reader = team(), SnapshotReader()
    run_gated(story, 0)
    before = reader.read(story.files()).agents[IDLE]
    lose_turn(story)
    story.send("n1", "idle", 1)
    story.start("idle", "g1", "n1")
    after = reader.read(story.files()).agents[IDLE]
    assert (len(before.gate.forbidden_starts), len(after.gate.forbidden_starts)) == (0, 1)
