"""The laws of logs, records and the tree."""

from __future__ import annotations

import pytest

from oracles.runtime.root_snapshot import garbage
from oracles.runtime.violations import (
    BrokenTree,
    DuplicateCompletion,
    DuplicateDelivery,
    DuplicateName,
    GateIgnored,
    MisroutedMessage,
    OverlappingTurns,
    PrematureDeadLetter,
    PresentedMismatch,
    SkippedMessage,
    UnfinishedTermination,
    UnpresentedDelivery,
    UnreturnedMessages,
    WriteAfterEnd,
)
from oracles.violation import (
    CorruptLog,
    Duplicated,
    Garbage,
    InvalidState,
    Phantom,
    Resurrected,
)
from tests.unit.oracles.runtime.story import Break, Story, hexed
from tests.unit.oracles.runtime.team import (
    Case,
    bounce,
    check_allowed,
    check_case,
    lose_turn,
    poison,
    receive,
    run_gated,
    team,
    title_of,
)

USER_LOG = "user/events.jsonl"
RIGHT: dict[str, Break] = {
    "nothing more": lambda story: None,
    "a message to an ended agent came back": bounce,
    "a message died after five presentations": lambda story: poison(story, 5),
    "a lost turn was told": lose_turn,
    "a gated agent was permitted a turn": lambda story: run_gated(story, 0),
    "a turn began while its gate was on the way": lambda story: run_gated(story, 1),
    "a line was written before the last was durable": lambda story: setattr(
        story.logs["boss"][5], "durable", 4
    ),
    "the operator ended an agent": lambda story: story.terminate("idle", "boot-idle"),
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_an_allowed_change_passes(change: Break) -> None:
    check_allowed(change)


def torn_tail_is_left(story: Story) -> None:
    story.others[USER_LOG] = story.files()[USER_LOG] + b'{"da'


def line_is_flipped(story: Story) -> None:
    story.others[USER_LOG] = story.files()[USER_LOG].replace(b"all done", b"all gone")


def line_is_missing_in_the_middle(story: Story) -> None:
    path = f"agents/{hexed('boss')}/events.jsonl"
    lines = story.files()[path].splitlines(keepends=True)
    story.others[path] = b"".join(lines[:3] + lines[4:])


def line_says_that_the_future_is_durable(story: Story) -> None:
    story.logs["boss"][3].durable = 4


def durable_lines_become_fewer(story: Story) -> None:
    story.logs["boss"][5].durable = 2


def temporary_file_is_left(story: Story) -> None:
    story.others["root.json.tmp.0a1b2c3d"] = b""


def record_is_torn(story: Story) -> None:
    story.others[f"agents/{hexed('boss')}/session.json"] = b'{"session_id":"'


def two_sessions_have_one_agent(story: Story) -> None:
    story.create("other", parent="boss")
    story.at("other", "agent.created")["agent_id"] = hexed("a-idle")


def agent_completes_twice(story: Story) -> None:
    again = story.at("worker", "turn.complete") | {"turn_id": "t9"}
    story.add("worker", "turn.complete", **again)


def turn_is_committed_after_the_next_has_begun(story: Story) -> None:
    story.start("boss", "t4", "r1")
    story.turn("boss", "t5", "r1")
    story.logs["boss"][-2].data["turn_id"] = "t4"


def end_counts_as_completed_without_a_turn(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.at("idle", "agent.terminated")["reason"] = "completed"


def two_outbox_entries_have_one_id(story: Story) -> None:
    reminders = story.at("boss", "turn.complete")["reminders"]
    story.at("boss", "turn.complete", 1)["reminders"] = reminders


WRONG: tuple[Case, ...] = (
    ("torn tail is left", CorruptLog, torn_tail_is_left),
    ("line is flipped", CorruptLog, line_is_flipped),
    ("line is missing in the middle", CorruptLog, line_is_missing_in_the_middle),
    ("line says that the future is durable", CorruptLog, line_says_that_the_future_is_durable),
    ("durable lines become fewer", CorruptLog, durable_lines_become_fewer),
    ("line lacks a member", CorruptLog, lambda s: s.at("user", "message.enqueued").pop("metadata")),
    ("temporary file is left", Garbage, temporary_file_is_left),
    ("record is active after recovery", InvalidState,
     lambda s: s.records["boss"].update(state="ACTIVE")),
    ("record is missing", InvalidState, lambda s: s.records.pop("boss")),
    ("record is torn", InvalidState, record_is_torn),
    ("record of an ended agent is suspended", InvalidState,
     lambda s: s.records["worker"].update(state="SUSPENDED")),
    ("record of a living agent is terminated", InvalidState,
     lambda s: s.records["boss"].update(state="TERMINATED")),
    ("completion has no line of its end", UnfinishedTermination,
     lambda s: s.drop("worker", "agent.terminated")),
    ("session belongs to no agent", BrokenTree,
     lambda s: s.records.update(orphan={"session_id": hexed("orphan"), "state": "SUSPENDED"})),
    ("child outlives its parent", BrokenTree, lambda s: s.terminate("boss", "r1")),
    ("the parent of an agent does not exist", BrokenTree,
     lambda s: s.at("idle", "agent.created").update(parent_session_id=hexed("nobody"))),
    ("agent is its own ancestor", BrokenTree,
     lambda s: s.at("boss", "agent.created").update(parent_session_id=hexed("idle"))),
    ("two living agents have one name", DuplicateName,
     lambda s: (s.root("other"), s.at("other", "agent.created").update(name="boss"))),
    ("two sessions have one agent", Duplicated, two_sessions_have_one_agent),
    ("message is enqueued twice", Duplicated,
     lambda s: s.add("boss", "message.enqueued", **s.at("boss", "message.enqueued", 4))),
    ("turn is committed twice", Duplicated,
     lambda s: s.add("boss", "turn.complete", **s.at("boss", "turn.complete", 1))),
    ("message is in a wrong log", MisroutedMessage,
     lambda s: s.at("worker", "message.enqueued", 1).update(recipient=hexed("a-idle"))),
    ("message is consumed by two turns", DuplicateDelivery, lambda s: s.turn("boss", "t4", "m2")),
    ("a message is delivered without a turn", UnpresentedDelivery,
     lambda s: s.add("boss", "message.delivered", message_id="r1")),
    ("a turn consumes a message that was never enqueued", Phantom,
     lambda s: s.at("boss", "turn.complete", 1)["presented"].append("never")),
    ("newer message is shown first", SkippedMessage,
     lambda s: (s.send("m7", "boss", "late"), s.turn("boss", "t4", "m7"))),
    ("a turn does not consume a presented message", PresentedMismatch,
     lambda s: s.at("boss", "turn.complete", 1)["presented"].pop()),
    ("message dies after four presentations", PrematureDeadLetter, lambda s: poison(s, 4)),
    ("dead message is shown", Resurrected,
     lambda s: (poison(s, 5), s.turn("boss", "t4", "r1", "m7"))),
    ("ended agent begins a turn", WriteAfterEnd,
     lambda s: s.add("worker", "turn.start", turn_id="t9", prompt="[]", presented=[])),
    ("ended agent gets a message", WriteAfterEnd, lambda s: receive(s, "worker", "text")),
    ("agent completes twice", DuplicateCompletion, agent_completes_twice),
    ("agent is terminated twice", DuplicateCompletion,
     lambda s: s.add("worker", "agent.terminated", **s.at("worker", "agent.terminated"))),
    ("completion gives no response", DuplicateCompletion,
     lambda s: s.at("worker", "turn.complete")["outbox"].clear()),
    ("pending messages of a terminated agent are not returned", UnreturnedMessages,
     lambda s: s.terminate("idle")),
    ("turn is committed after the next has begun", OverlappingTurns,
     turn_is_committed_after_the_next_has_begun),
    ("a gated agent runs two turns", GateIgnored, lambda s: run_gated(s, 2)),
    ("a turn uses a permit that was not given", GateIgnored,
     lambda s: s.turn("boss", "t4", "r1", permitted=True)),
    ("session is created twice", InvalidState,
     lambda s: s.add("boss", "session.created", **s.at("boss", "session.created"))),
    ("agent is created late", InvalidState,
     lambda s: s.add("boss", "agent.created", **s.at("boss", "agent.created"))),
    ("end belongs to another agent", InvalidState,
     lambda s: s.at("worker", "agent.terminated").update(agent_id=hexed("a-boss"))),
    ("end counts as completed without a turn", InvalidState,
     end_counts_as_completed_without_a_turn),
    ("complete turn fails", InvalidState,
     lambda s: s.add("boss", "turn.failed", turn_id="t3", reason="timeout")),
    ("a message has an unknown kind", Phantom, lambda s: receive(s, "boss", "rumour")),
    ("USER acknowledges a message that was never enqueued", Phantom,
     lambda s: s.add("user", "message.delivered", message_id="never")),
    ("consumed message dies", DuplicateDelivery,
     lambda s: s.add("boss", "message.dead", message_id="m2", reason="too often")),
    ("two turns have one id", Duplicated, lambda s: s.start("boss", "t3", "r1")),
    ("two outbox entries have one id", Duplicated, two_outbox_entries_have_one_id),
    ("control is obeyed twice", Duplicated,
     lambda s: s.add("idle", "tool.gate", **s.at("idle", "tool.gate"))),
    ("a turn that does not complete returns a message", UnreturnedMessages,
     lambda s: s.at("boss", "turn.complete", 1).update(returned=["r1"])),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


def test_a_gate_that_is_the_last_that_a_boot_has_found_holds_as_well() -> None:
    story = team()
    story.at("boss", "turn.complete", 1)["controls"].pop()
    story.asked["t3"].calls.pop(1)
    story.drop("idle", "tool.permit_turn")
    shadow = story.settle()
    story.start("idle", "g0", "boot-idle")
    with pytest.raises(GateIgnored):
        shadow.check(story.snapshot())


def test_a_gate_that_a_boot_has_found_holds_from_the_first_turn_on() -> None:
    story = team()
    run_gated(story, 0)
    shadow = story.settle()
    story.send("n1", "idle", 1)
    story.start("idle", "g1", "n1")
    for record in story.operator_calls[-2:]:
        record(shadow)
    with pytest.raises(GateIgnored):
        shadow.check(story.snapshot())


def test_files_that_nobody_reads_are_garbage() -> None:
    session = f"agents/{hexed('boss')}"
    read = [
        "root.json", "runtime.lock", "user/events.jsonl", f"{session}/events.jsonl",
        f"{session}/events.pending", f"{session}/session.json", "root.json.quarantine.1",
        f"{session}/events.jsonl.quarantine.12", "user/", "agents/", f"{session}/",
        "state.db", "state.db-wal", "archive/", f"archive/{hexed('boss')}.jsonl",
        f"{session}/events.3.jsonl",
    ]  # fmt: skip
    left = ["agents/boss/session.json", f"archive/{session}.jsonl", "other/"]
    temporary = f"{session}/session.json.tmp.00000000"
    paths = [*read, *left, temporary]
    assert garbage(paths) == sorted([*left, temporary])
    assert garbage(paths, temporaries=False) == sorted(left)
