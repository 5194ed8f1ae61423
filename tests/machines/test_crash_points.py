"""H-10: every sub-step of what the runtime does is a crash point that was really hit.

Those of the passes of recovery are in ``test_recovery_passes.py``.
"""

from __future__ import annotations

from functools import cache

import pytest

from powercut.action import Action, Json
from powercut.coverage import Coverage
from powercut.crash_everywhere import CrashEverywhere
from system.storage.framing import Framing
from tests.machines.sub_steps import LOG, WORK, must_be_tried, of

framings = pytest.mark.parametrize("framing", list(Framing), ids=[f.value for f in Framing])


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
    # The pool has one slot: somebody has to go.
    create("Cleo"),
    Action("suspend", {"agent": 2, "patience": 0}),
    send(2),
    Action("acknowledge", {"patience": 0}),
    Action("terminate", {"agent": 1, "patience": 0}),
)
"""Ada has a child, which completes; then there are more agents than slots."""


@cache
def work(framing: Framing) -> Coverage:
    """Return what was crashed of the script; it is done once."""
    coverage = Coverage()
    CrashEverywhere(framing, SCRIPT, coverage).run()
    return coverage


@pytest.mark.parametrize("name", WORK)
@framings
def test_every_sub_step_was_crashed(name: str, framing: Framing) -> None:
    must_be_tried(WORK[name], work(framing))


@framings
def test_every_sub_step_of_the_log_was_crashed(framing: Framing) -> None:
    must_be_tried(of(f"log, {framing.value}", LOG[framing]), work(framing))


@framings
def test_no_site_that_the_script_meets_was_left_out(framing: Framing) -> None:
    coverage = work(framing)
    assert [str(gap) for gap in coverage.gaps()] == []
    assert set(coverage.met) == {action.name for action in SCRIPT}
