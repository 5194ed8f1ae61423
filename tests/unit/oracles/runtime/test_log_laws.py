"""The laws of logs, records and the tree: who notices when a recovered root breaks one."""

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
    Violation,
)
from tests.unit.oracles.runtime.story import Break, Story, hexed
from tests.unit.oracles.runtime.team import (
    Wrong,
    bounce,
    lose_turn,
    name_of,
    poison,
    receive,
    run_gated,
    team,
)

WRONG = Wrong()
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
def test_what_may_happen_is_right(change: Break) -> None:
    story = team()
    change(story)
    story.settle()


@WRONG.caught_by(CorruptLog)
def torn_tail_is_left(story: Story) -> None:
    story.others[USER_LOG] = story.files()[USER_LOG] + b'{"da'


@WRONG.caught_by(CorruptLog)
def line_is_flipped(story: Story) -> None:
    story.others[USER_LOG] = story.files()[USER_LOG].replace(b"all done", b"all gone")


@WRONG.caught_by(CorruptLog)
def line_is_missing_in_the_middle(story: Story) -> None:
    path = f"agents/{hexed('boss')}/events.jsonl"
    lines = story.files()[path].splitlines(keepends=True)
    story.others[path] = b"".join(lines[:3] + lines[4:])


@WRONG.caught_by(CorruptLog)
def line_says_that_the_future_is_durable(story: Story) -> None:
    story.logs["boss"][3].durable = 4


@WRONG.caught_by(CorruptLog)
def durable_lines_become_fewer(story: Story) -> None:
    story.logs["boss"][5].durable = 2


@WRONG.caught_by(CorruptLog)
def line_lacks_a_member(story: Story) -> None:
    del story.at("user", "message.enqueued")["metadata"]


@WRONG.caught_by(Garbage)
def temporary_file_is_left(story: Story) -> None:
    story.others["root.json.tmp.0a1b2c3d"] = b""


@WRONG.caught_by(InvalidState)
def record_is_active_after_recovery(story: Story) -> None:
    story.records["boss"]["state"] = "ACTIVE"


@WRONG.caught_by(InvalidState)
def record_is_missing(story: Story) -> None:
    del story.records["boss"]


@WRONG.caught_by(InvalidState)
def record_is_torn(story: Story) -> None:
    story.others[f"agents/{hexed('boss')}/session.json"] = b'{"session_id":"'


@WRONG.caught_by(InvalidState)
def record_of_an_ended_agent_is_suspended(story: Story) -> None:
    story.records["worker"]["state"] = "SUSPENDED"


@WRONG.caught_by(InvalidState)
def record_of_a_living_agent_is_terminated(story: Story) -> None:
    story.records["boss"]["state"] = "TERMINATED"


@WRONG.caught_by(UnfinishedTermination)
def completion_has_no_line_of_its_end(story: Story) -> None:
    story.drop("worker", "agent.terminated")


@WRONG.caught_by(BrokenTree)
def session_belongs_to_no_agent(story: Story) -> None:
    story.records["orphan"] = {"session_id": hexed("orphan"), "state": "SUSPENDED"}


@WRONG.caught_by(BrokenTree)
def child_outlives_its_parent(story: Story) -> None:
    story.terminate("boss", "r1")


@WRONG.caught_by(BrokenTree)
def parent_is_not_there(story: Story) -> None:
    story.at("idle", "agent.created")["parent_session_id"] = hexed("nobody")


@WRONG.caught_by(BrokenTree)
def agent_is_its_own_ancestor(story: Story) -> None:
    story.at("boss", "agent.created")["parent_session_id"] = hexed("idle")


@WRONG.caught_by(DuplicateName)
def two_living_agents_have_one_name(story: Story) -> None:
    story.root("other")
    story.at("other", "agent.created")["name"] = "boss"


@WRONG.caught_by(Duplicated)
def two_sessions_have_one_agent(story: Story) -> None:
    story.create("other", parent="boss")
    story.at("other", "agent.created")["agent_id"] = hexed("a-idle")


@WRONG.caught_by(Duplicated)
def message_is_enqueued_twice(story: Story) -> None:
    story.add("boss", "message.enqueued", **story.at("boss", "message.enqueued", 4))


@WRONG.caught_by(Duplicated)
def turn_is_committed_twice(story: Story) -> None:
    story.add("boss", "turn.complete", **story.at("boss", "turn.complete", 1))


@WRONG.caught_by(MisroutedMessage)
def message_is_in_a_wrong_log(story: Story) -> None:
    story.at("worker", "message.enqueued", 1)["recipient"] = hexed("a-idle")


@WRONG.caught_by(DuplicateDelivery)
def message_is_consumed_by_two_turns(story: Story) -> None:
    story.turn("boss", "t4", "m2")


@WRONG.caught_by(UnpresentedDelivery)
def message_is_delivered_and_no_turn_showed_it(story: Story) -> None:
    story.add("boss", "message.delivered", message_id="r1")


@WRONG.caught_by(Phantom)
def message_is_consumed_that_never_came(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["presented"].append("never")


@WRONG.caught_by(SkippedMessage)
def newer_message_is_shown_first(story: Story) -> None:
    story.send("m7", "boss", "late")
    story.turn("boss", "t4", "m7")


@WRONG.caught_by(PresentedMismatch)
def turn_forgets_what_it_began_with(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["presented"].pop()


@WRONG.caught_by(PrematureDeadLetter)
def message_dies_after_four_presentations(story: Story) -> None:
    poison(story, 4)


@WRONG.caught_by(Resurrected)
def dead_message_is_shown(story: Story) -> None:
    poison(story, 5)
    story.turn("boss", "t4", "r1", "m7")


@WRONG.caught_by(WriteAfterEnd)
def ended_agent_begins_a_turn(story: Story) -> None:
    story.add("worker", "turn.start", turn_id="t9", prompt="[]", presented=[])


@WRONG.caught_by(WriteAfterEnd)
def ended_agent_gets_a_message(story: Story) -> None:
    receive(story, "worker", "text")


@WRONG.caught_by(DuplicateCompletion)
def agent_completes_twice(story: Story) -> None:
    again = story.at("worker", "turn.complete") | {"turn_id": "t9"}
    story.add("worker", "turn.complete", **again)


@WRONG.caught_by(DuplicateCompletion)
def agent_is_terminated_twice(story: Story) -> None:
    story.add("worker", "agent.terminated", **story.at("worker", "agent.terminated"))


@WRONG.caught_by(DuplicateCompletion)
def completion_gives_no_response(story: Story) -> None:
    story.at("worker", "turn.complete")["outbox"].clear()


@WRONG.caught_by(UnreturnedMessages)
def unread_messages_vanish_with_their_agent(story: Story) -> None:
    story.terminate("idle")


@WRONG.caught_by(OverlappingTurns)
def turn_is_committed_after_the_next_has_begun(story: Story) -> None:
    story.start("boss", "t4", "r1")
    story.turn("boss", "t5", "r1")
    story.logs["boss"][-2].data["turn_id"] = "t4"


@WRONG.caught_by(GateIgnored)
def gated_agent_runs_and_runs(story: Story) -> None:
    run_gated(story, 2)


@WRONG.caught_by(GateIgnored)
def turn_is_permitted_by_nobody(story: Story) -> None:
    story.turn("boss", "t4", "r1", permitted=True)


@WRONG.caught_by(InvalidState)
def session_is_created_twice(story: Story) -> None:
    story.add("boss", "session.created", **story.at("boss", "session.created"))


@WRONG.caught_by(InvalidState)
def agent_is_created_late(story: Story) -> None:
    story.add("boss", "agent.created", **story.at("boss", "agent.created"))


@WRONG.caught_by(InvalidState)
def end_belongs_to_another_agent(story: Story) -> None:
    story.at("worker", "agent.terminated")["agent_id"] = hexed("a-boss")


@WRONG.caught_by(InvalidState)
def end_counts_as_completed_without_a_turn(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    story.at("idle", "agent.terminated")["reason"] = "completed"


@WRONG.caught_by(InvalidState)
def complete_turn_fails(story: Story) -> None:
    story.add("boss", "turn.failed", turn_id="t3", reason="timeout")


@WRONG.caught_by(Phantom)
def message_has_no_known_kind(story: Story) -> None:
    receive(story, "boss", "rumour")


@WRONG.caught_by(Phantom)
def user_acknowledges_what_never_came(story: Story) -> None:
    story.add("user", "message.delivered", message_id="never")


@WRONG.caught_by(DuplicateDelivery)
def consumed_message_dies(story: Story) -> None:
    story.add("boss", "message.dead", message_id="m2", reason="too often")


@WRONG.caught_by(Duplicated)
def two_turns_have_one_id(story: Story) -> None:
    story.start("boss", "t3", "r1")


@WRONG.caught_by(Duplicated)
def two_promises_have_one_id(story: Story) -> None:
    reminders = story.at("boss", "turn.complete")["reminders"]
    story.at("boss", "turn.complete", 1)["reminders"] = reminders


@WRONG.caught_by(Duplicated)
def control_is_obeyed_twice(story: Story) -> None:
    story.add("idle", "tool.gate", **story.at("idle", "tool.gate"))


@WRONG.caught_by(UnreturnedMessages)
def agent_that_goes_on_returns_a_message(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["returned"] = ["r1"]


@pytest.mark.parametrize(("change", "violation"), WRONG.stories, ids=name_of)
def test_what_may_not_happen_is_noticed(change: Break, violation: type[Violation]) -> None:
    WRONG.judge(change, violation)


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
    for tell in story.told[-2:]:
        tell(shadow)
    with pytest.raises(GateIgnored):
        shadow.check(story.snapshot())


def test_files_that_nobody_reads_are_garbage() -> None:
    session = f"agents/{hexed('boss')}"
    read = [
        "root.json", "runtime.lock", "user/events.jsonl", f"{session}/events.jsonl",
        f"{session}/events.pending", f"{session}/session.json", "root.json.quarantine.1",
        f"{session}/events.jsonl.quarantine.12", "user/", "agents/", f"{session}/",
    ]  # fmt: skip
    left = [
        "agents/boss/session.json",
        f"{session}/session.json.tmp.00000000",
        "state.db",
        "other/",
    ]
    assert garbage([*read, *left]) == sorted(left)
