"""Every commit of durable work was crashed, and every boot after one; in each phase, in both ways.

The agent begins a task, and asks for activities, a trigger, a reminder and a schedule; the operator
emits, performs and decides. Each operation on ``state.db`` and on the logs is crashed before,
during and after it, by a kill and by a power cut that loses all that was not durable. So are the
operations of the boots that give back claims, apply outboxes, and decide about activities.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crash_tests.crash_everywhere import CrashEverywhere, watching
from crash_tests.targets.runtime_durable import runtime_durable
from powercut.fuzz.action import Action, Json
from powercut.fuzz.coverage import Coverage, SubStep
from tests.crash_tests.sub_steps import must_be_tried
from tests.crash_tests.test_crash_points import RUN, create

TOOLS: Json = {
    "do": [
        ["begin_task", {"todos": ["tea"]}],
        ["perform", {"action": "mail", "arguments": {"to": "Bob"}}],
        ["perform", {"action": "pay", "arguments": {"to": "Bob"}}],
        ["emit", {"payload": "tea", "delay_ns": 0}],
        ["remind_me", {"delay_ns": 10**9, "payload": "tea"}],
        ["schedule", {"kind": "every", "spec": "60", "payload": "tea", "catch_up": "latest"}],
    ],
    "say": "",
}


def emit(payload: Json, delay: int, *, routed: bool = False) -> Action:
    arguments: dict[str, Json] = {
        "agent": 0, "routed": routed, "again": False, "delay": delay, "payload": payload,
        "then": 0, "patience": 0,
    }  # fmt: skip
    return Action("emit", arguments)


SCRIPT = (
    create("Ada"),
    Action("answers", {"effects": ["lost", "performed", "lost"], "router": ["first"]}),
    emit(TOOLS, 0),
    RUN,
    emit("routed", 0, routed=True),
    RUN,
    Action("perform", {"which": 4, "provider": "pay", "patience": 0}),
    Action("decide", {"which": 0, "decision": "performed", "patience": 0}),
    Action("advance", {"seconds": 61, "back": False}),
)

COMMITS = {
    "the creation of state.db": "create_database",
    "an emission": "Runtime.emit",
    "a route": "Routing._route",
    "a claim": "claimed_trigger",
    "the outbox of a line": "apply_outbox",
    "an attempt, and its outcome": "ActivityRunner.perform",
    "the intent of a program": "ActivityCalls.perform",
    "a decision": "ActivityCalls.resolve",
}
"""Functions among the callers of a commit."""
BOOT_COMMITS = {
    "the log of SQLite": "_renew_log",
    "the outbox of lines, claims and activities": "apply_outboxes",
    "reports, and RESUME": "notify_agents",
}


def everywhere() -> CrashEverywhere:
    return CrashEverywhere(runtime_durable, watching(runtime_durable), SCRIPT, Coverage())


def must_commit(crashes: CrashEverywhere, commits: Mapping[str, str]) -> None:
    """Fail unless each of these commits was crashed in all ways, and every other site too."""
    steps = [SubStep(name, "Sync", (function,)) for name, function in commits.items()]
    must_be_tried(steps, crashes.coverage)
    assert [str(gap) for gap in crashes.coverage.gaps()] == []


def test_every_commit_is_crashed() -> None:
    crashes = everywhere()
    crashes.run({action.name for action in SCRIPT})
    must_commit(crashes, COMMITS)


@pytest.mark.stress
def test_every_boot_after_a_commit_is_crashed() -> None:
    crashes = everywhere()
    crashes.run_boots(("emit", "run", "perform", "advance"))
    must_commit(crashes, BOOT_COMMITS)
