"""The law of reports to USER: a stopped trigger, or an activity that needs a decision."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.violation import TornRecord
from tests.unit.oracles.runtime.story import message
from tests.unit.oracles.runtime.team import team

REPORTS: dict[str, dict[str, Any]] = {
    "one.dead": {
        "notice": "trigger", "v": 1, "trigger_id": "one", "status": "DEAD", "source": "IMMEDIATE",
        "key": None, "session_id": "s", "fire_at": 7.0, "attempts": 5, "reason": "no answer",
    },
    "key.uncertain": {
        "notice": "activity", "v": 1, "activity_id": "key", "status": "UNCERTAIN",
        "action": "mail", "session_id": "s", "attempts": 1, "reason": "timeout",
    },
}  # fmt: skip


def settle(
    report: str, message_id: str | None = None, sender: str = "RUNTIME", **changed: object
) -> None:
    """Judge the log of USER with a report in which some members are changed."""
    payload, story = {**REPORTS[report], **changed}, team()
    written = message(message_id or report, sender, "USER", "system", payload)
    story.add("user", "message.enqueued", **written)
    story.settle()


@pytest.mark.parametrize("report", REPORTS)
def test_a_right_report_is_accepted(report: str) -> None:
    settle(report)


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(
    "changed",
    [
        {"sender": "USER"}, {"v": 2}, {"status": "DONE"}, {"notice": "recovery"}, {"more": 1},
        {"message_id": "two.dead"}, {"message_id": "one.uncertain"},
    ],
    ids=str,
)  # fmt: skip
def test_a_malformed_report_is_reported(report: str, changed: dict[str, Any]) -> None:
    with pytest.raises(TornRecord, match="a report to USER is malformed"):
        settle(report, **changed)
