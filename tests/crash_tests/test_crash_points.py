"""Every sub-step of the runtime's work was crashed, in each phase, by a kill and a power cut.

The sub-steps of recovery are in ``test_recovery_passes.py``.
"""

from __future__ import annotations

from functools import partial

import pytest

from crash_tests.crash_everywhere import CrashEverywhere, WatchedRuntime
from crash_tests.targets.runtime import RuntimeTarget
from powercut.fuzz.action import Action, Json
from powercut.fuzz.coverage import Coverage
from system.storage.framing import Framing
from tests.crash_tests.sub_steps import LOG, WORK, must_be_tried, of
from tests.sample import in_the_gate


def create(name: str) -> Action:
    return Action(
        "create",
        {"name": name, "provider": "bare", "instructions": "", "again": False, "patience": 0},
    )


def send(agent: int, *do: Json) -> Action:
    payload: Json = {"do": list(do), "say": ""}
    return Action(
        "send", {"agent": agent, "payload": payload, "again": False, "then": 0, "patience": 0}
    )


RUN = Action("run", {"steps": 0})

SCRIPT = (
    create("Ada"),
    send(
        0,
        ["spawn_agent", {"name": "Dan", "instructions": "wait"}],
        ["send_message", {"to": "USER", "payload": "hello"}],
    ),
    RUN,
    send(1, ["complete", {"result": "done"}]),
    RUN,
    create("Bob"),
    # The pool has one slot, so an agent is evicted.
    create("Cleo"),
    Action("suspend", {"agent": 2, "patience": 0}),
    send(2),
    Action("acknowledge", {"patience": 0}),
    Action("terminate", {"agent": 1, "patience": 0}),
)
"""Ada spawns a child, which completes; then there are more agents than slots."""


@pytest.mark.parametrize("framing", in_the_gate(Framing, lambda each: each is Framing.FRAMED))
def test_every_sub_step_is_crashed(framing: Framing, subtests: pytest.Subtests) -> None:
    coverage = Coverage()
    runtime, watched = partial(RuntimeTarget, "runtime", framing), partial(WatchedRuntime, framing)
    CrashEverywhere(runtime, watched, SCRIPT, coverage).run({action.name for action in SCRIPT})
    log = of(f"log, {framing.value}", LOG[framing])
    for name, steps in {**WORK, "log": log}.items():
        with subtests.test(name):
            must_be_tried(steps, coverage)
    with subtests.test("every site of the script is crashed"):
        assert [str(gap) for gap in coverage.gaps()] == []
        assert set(coverage.met) == {action.name for action in SCRIPT}
