"""The laws inside one log, and sequences of lines that they allow."""

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
from oracles.violation import Duplicated, InvalidState
from tests.unit.oracles.runtime.story import Break, Data, Story, hexed
from tests.unit.oracles.runtime.team import (
    Case,
    check_allowed,
    check_case,
    lose_turn,
    receive,
    run_gated,
    spawn,
    team,
    title_of,
)

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
    """The turn uses no permit, because the gate is open when it is committed."""
    control(story, "t4", "r1", "ungate")
    story.turn("idle", "g0", "boot-idle")
    story.move("idle", "tool.ungate", 0, 6)


def end_all(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.terminate("boss", "r1")


def lose_unsynced_lines(story: Story) -> None:
    """A crash loses the unsynced message.delivered lines."""
    del story.logs["boss"][-3:]


def lose_turn_of_the_ended(story: Story) -> None:
    story.start("idle", "g0", "boot-idle")
    story.terminate("idle", "boot-idle")


def reuse_a_name(story: Story) -> None:
    story.root("other")
    story.at("other", "agent.created")["name"] = "worker"
    story.operator_calls[-2] = lambda s: s.operator.creates.begin(
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
    "the notes of a turn were lost": lose_unsynced_lines,
    "the beginning of a turn was damaged": lambda s: s.drop("boss", "turn.start", 1),
    "nobody told an agent of a lost turn that has ended": lose_turn_of_the_ended,
    "a name of who has ended is given again": reuse_a_name,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_an_allowed_change_passes(change: Break) -> None:
    check_allowed(change)


def agent_is_created_without_a_session(story: Story) -> None:
    story.logs["idle"][0].event = "suspend.result"


def parent_is_no_agent(story: Story) -> None:
    story.records["orphan"] = {"session_id": hexed("orphan"), "state": "SUSPENDED"}
    story.create("child", parent="orphan")


def agent_is_below_a_cycle(story: Story) -> None:
    story.create("able", parent="boss")
    story.at("boss", "agent.created")["parent_session_id"] = hexed("idle")


def newer_message_is_shown_first_in_a_turn_that_fails(story: Story) -> None:
    story.send("m7", "boss", "late")
    story.start("boss", "t4", "m7")
    story.add("boss", "turn.failed", turn_id="t4", reason="timeout")


def ended_agent_commits_a_turn(story: Story) -> None:
    again = story.at("worker", "turn.complete") | {"turn_id": "t9", "terminate": False}
    story.add("worker", "turn.complete", **again)


def agent_ends_for_a_reason_of_its_own(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.at("idle", "agent.terminated")["reason"] = "bored"


def gated_agent_runs_on_when_it_is_gated_once_more(story: Story) -> None:
    run_gated(story, 1)
    control(story, "t4", "r1", "gate")
    story.send("n9", "idle", 9)
    story.turn("idle", "g9", "n9")


def turn_uses_up_a_permit_that_has_ended_with_its_gate(story: Story) -> None:
    ungate_during_a_permitted_turn(story)
    story.at("idle", "turn.complete")["permitted"] = True


def turn_uses_up_a_permit_of_an_earlier_gate(story: Story) -> None:
    control(story, "t4", "r1", "ungate", "gate")
    story.turn("idle", "g0", "boot-idle", permitted=True)


def turn_uses_up_a_permit_that_came_after_it_began(story: Story) -> None:
    story.turn("idle", "g0", "boot-idle", permitted=True)
    story.move("idle", "tool.permit_turn", 0, 5)


def turn_is_committed_that_has_failed(story: Story) -> None:
    story.turn("boss", "t4", "r1")
    story.add("boss", "turn.failed", turn_id="t4", reason="timeout")
    story.move("boss", "turn.failed", 0, -2)


def two_subscriptions_have_one_id(story: Story) -> None:
    subscribed = story.at("boss", "turn.complete")["subscribed"]
    story.at("boss", "turn.complete", 1)["subscribed"] = subscribed


WRONG: tuple[Case, ...] = (
    ("a message returned by a completion gets no error", LostErrorMessage,
     lambda s: (complete_unread(s), s.logs["user"].pop())),
    ("agent is created without a session", InvalidState, agent_is_created_without_a_session),
    ("record is that of another session", InvalidState,
     lambda s: s.records["boss"].update(session_id=hexed("idle"))),
    ("parent is no agent", BrokenTree, parent_is_no_agent),
    ("an agent is below a cycle", BrokenTree, agent_is_below_a_cycle),
    ("two turns under way have one id", Duplicated,
     lambda s: (s.start("boss", "t4", "r1"), s.start("boss", "t4", "r1"))),
    ("newer message is shown first in a turn that fails", SkippedMessage,
     newer_message_is_shown_first_in_a_turn_that_fails),
    ("ended agent commits a turn", WriteAfterEnd, ended_agent_commits_a_turn),
    ("completed agent is ended by the operator", DuplicateCompletion,
     lambda s: s.at("worker", "agent.terminated").update(reason="operator")),
    ("agent ends for a reason of its own", InvalidState, agent_ends_for_a_reason_of_its_own),
    ("ended agent is gated", WriteAfterEnd,
     lambda s: s.add("worker", "tool.gate", control_id="c9", by=BOSS)),
    ("gated agent runs on when it is gated once more", GateIgnored,
     gated_agent_runs_on_when_it_is_gated_once_more),
    ("gated agent uses up no permit", GateIgnored, lambda s: s.turn("idle", "g0", "boot-idle")),
    ("turn uses up a permit that has ended with its gate", GateIgnored,
     turn_uses_up_a_permit_that_has_ended_with_its_gate),
    ("turn uses up a permit of an earlier gate", GateIgnored,
     turn_uses_up_a_permit_of_an_earlier_gate),
    ("turn uses up a permit that came after it began", GateIgnored,
     turn_uses_up_a_permit_that_came_after_it_began),
    ("turn is committed that has failed", InvalidState, turn_is_committed_that_has_failed),
    ("two messages have one id", Duplicated,
     lambda s: s.at("boss", "turn.complete", 1)["outbox"][0].update(message_id="m3")),
    ("two bootstraps have one id", Duplicated,
     lambda s: s.at("boss", "turn.complete", 1).update(spawned=[spawn("worker")])),
    ("two controls have one id", Duplicated,
     lambda s: s.at("boss", "turn.complete", 1)["controls"][0].update(control_id="c2")),
    ("two subscriptions have one id", Duplicated, two_subscriptions_have_one_id),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


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


def test_a_snapshot_keeps_its_forbidden_starts() -> None:
    story, reader = team(), SnapshotReader()
    run_gated(story, 0)
    before = reader.read(story.files()).agents[IDLE]
    lose_turn(story)
    story.send("n1", "idle", 1)
    story.start("idle", "g1", "n1")
    after = reader.read(story.files()).agents[IDLE]
    assert (len(before.gate.forbidden_starts), len(after.gate.forbidden_starts)) == (0, 1)


@pytest.mark.parametrize("failures", [4, 5])
def test_message_is_presented_five_times_at_most(failures: int) -> None:
    story = Story()
    story.root("boss")
    story.send("m7", "boss", "again")
    for number in range(failures):
        story.start("boss", f"f{number}", "m7")
        story.add("boss", "turn.failed", turn_id=f"f{number}", reason="no answer")
    story.start("boss", "last", "m7")
    violation = story.snapshot().agents[BOSS].violation
    assert (violation is not None) is (failures == 5)
