"""A dead outcome was crashed at each operation, and so was each boot that follows.

The agent asks for an activity. Then five turns that present its outcome fail, so it is a dead
letter, and USER gets an error. Each operation is crashed before, during and after it, by a kill and
by a power cut that loses all that was not durable. The oracle requires one error, and no other.
"""

from __future__ import annotations

from crash_tests.crash_everywhere import CrashEverywhere, watching
from crash_tests.targets.runtime_durable import DurableRuntimeTarget, runtime_durable
from oracles.runtime.marks import DEAD_OUTCOME
from powercut.fuzz.action import Action
from powercut.fuzz.coverage import Coverage, SubStep
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from tests.crash_tests.sub_steps import must_be_tried
from tests.crash_tests.test_crash_points import create, send

SCRIPT = (
    create("Ada"),
    Action("fail_outcome", {"fault": "lost", "count": 5}),
    send(0, ["perform", {"action": "pay", "arguments": {"to": "Bob"}}]),
    # Four turns fail.
    Action("advance", {"seconds": 10, "back": False}),
    Action("run", {"steps": 0}),
    Action("advance", {"seconds": 30, "back": False}),
)
DEATH = (
    SubStep("the dead letter", "Sync", ("Turns._return_dead_letters", "AgentLog.commit")),
    SubStep("the error", "Sync", ("Turns._return_dead_letters", "Dispatcher._write")),
)
BOOT = (SubStep("the error, sent by a boot", "Sync", ("dispatch_outboxes", "Dispatcher._write")),)


def test_the_script_leaves_a_dead_outcome() -> None:
    targets: list[DurableRuntimeTarget] = []

    def make() -> DurableRuntimeTarget:
        targets.append(runtime_durable())
        return targets[-1]

    target_run = TargetRun(make)
    for action in SCRIPT:
        target_run.perform(action, PlainChoices())
    target_run.finish()
    assert DEAD_OUTCOME in targets[0].marks.reached


def test_a_dead_outcome_is_reported_once_after_every_crash() -> None:
    crashes = CrashEverywhere(runtime_durable, watching(runtime_durable), SCRIPT, Coverage())
    crashes.run({"advance"})
    crashes.run_boots({"advance"})
    must_be_tried(DEATH, crashes.coverage)
    must_be_tried(BOOT, crashes.coverage)
    assert [str(gap) for gap in crashes.coverage.gaps()] == []
