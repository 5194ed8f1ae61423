"""The law of errors to USER about outcomes of activities that were presented too often."""

from __future__ import annotations

import pytest

from oracles.runtime.marks import DEAD_LETTER, DEAD_OUTCOME, REDELIVERED, marks_of_run
from oracles.runtime.violations import LostErrorMessage
from oracles.violation import Duplicated, Phantom, TornRecord
from tests.unit.oracles.runtime.story import Break, Data, Story, hexed
from tests.unit.oracles.runtime.team import (
    Case,
    bounce,
    check_allowed,
    check_case,
    receive,
    team,
    title_of,
)

BOSS, IDLE = hexed("a-boss"), hexed("a-idle")
KEY = "activity:1"
ABOUT = f"{KEY}.result"


def perform(story: Story) -> Data:
    """The boss asks for an activity, and its log gets the outcome; return it."""
    story.turn(
        "boss", "t4", "r1",
        calls=[("perform", {"action": "mail", "arguments": {}}, {"activity_id": KEY})],
        activities=[{"key": KEY, "action": "mail", "arguments": {}, "task_id": None}],
    )  # fmt: skip
    outcome = {
        "activity_id": KEY, "action": "mail", "status": "DONE", "provider_ref": "ref",
        "result": None, "reason": None, "decided_by": None,
    }  # fmt: skip
    return receive(story, "boss", "activity", message_id=ABOUT, sender="RUNTIME", payload=outcome)


def error(story: Story, name: str = "user", **members: str) -> Data:
    """Add the error about the outcome to a log; return it."""
    payload = {
        "reason": "too often", "message_id": ABOUT, "activity_id": KEY, "action": "mail",
        "status": "DONE",
    }  # fmt: skip
    return receive(
        story, name, "error", message_id=f"{ABOUT}.error", reply_to=ABOUT,
        payload=payload | members,
    )  # fmt: skip


def die(story: Story) -> Data:
    """Five turns fail that present the outcome; return the line that says that it is dead."""
    perform(story)
    for number in range(5):
        story.start("boss", f"p{number}", ABOUT)
        story.add("boss", "turn.failed", turn_id=f"p{number}", reason="timeout")
    return story.add("boss", "message.dead", message_id=ABOUT, reason="too often")


def name_nothing(story: Story) -> None:
    """The error has only the members of an ordinary one."""
    die(story)
    error(story)["payload"] = {"reason": "too often", "message_id": ABOUT}


def end(story: Story) -> Data:
    """The agent ends before it has read the outcome; return the outcome."""
    outcome = perform(story)
    story.terminate("idle", "boot-idle")
    story.terminate("boss", ABOUT)
    return outcome


RIGHT: dict[str, Break] = {
    "an outcome is pending": perform,
    "an outcome is dead, and USER has the error": lambda s: (die(s), error(s)),
    "an outcome is returned, and there is no error": end,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_an_allowed_change_passes(change: Break) -> None:
    check_allowed(change)


WRONG: tuple[Case, ...] = (
    ("USER has no error about a dead outcome", LostErrorMessage, die),
    ("USER has two errors about a dead outcome", Duplicated,
     lambda s: (die(s), error(s), error(s))),
    ("the error is about an outcome that is pending", Phantom, lambda s: (perform(s), error(s))),
    ("the error is about an outcome that was returned", Phantom, lambda s: (end(s), error(s))),
    ("another agent has the error as well", Phantom,
     lambda s: (die(s), error(s), error(s, "idle"))),
    ("the error comes from another agent", Phantom,
     lambda s: (die(s), error(s).update(sender=IDLE))),
    ("the error does not name the activity", TornRecord, name_nothing),
    ("the error has another status", TornRecord, lambda s: (die(s), error(s, status="FAILED"))),
    ("the error names another activity", TornRecord,
     lambda s: (die(s), error(s, activity_id="activity:2"))),
    ("the error has another member", TornRecord, lambda s: (die(s), error(s, result="ref"))),
    ("the error about a text names an activity", TornRecord,
     lambda s: bounce(s)["payload"].update(activity_id=KEY)),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


def test_a_dead_outcome_is_marked() -> None:
    story = team()
    die(story)
    assert marks_of_run(story.snapshot()) == (REDELIVERED, DEAD_LETTER, DEAD_OUTCOME)
