"""What a boot does to the triggers of the shadow: their names, and their pauses."""

from __future__ import annotations

from dataclasses import replace

from oracles.durable.shadow_state import ExpectedTask, ExpectedTrigger, State

KEY = "resume:task"


def test_the_next_resume_of_a_task_has_a_name_that_no_earlier_one_has() -> None:
    """The first of two triggers with this key was removed, and its name is free."""
    settled = ExpectedTrigger(KEY, "session", 1.0, 5, None, status="DONE")
    state = State(
        triggers={f"{KEY} #1": settled},
        tasks={"task": ExpectedTask("session", "ACTIVE", "[]", (("step", "1"),))},
    )
    resumed = state.resumed(2.0, 0.0)
    assert set(resumed.triggers) == {f"{KEY} #0", f"{KEY} #1"}
    assert resumed.triggers[f"{KEY} #1"] == settled


def test_a_recovery_reduces_a_pause_to_an_hour_and_none_of_a_stopped_trigger() -> None:
    waiting = ExpectedTrigger(None, "session", 1.0, 5, None, pause=(9_000.0, 9_001.0))
    stopped = replace(waiting, status="DEAD")
    recovered = State(triggers={"waiting": waiting, "stopped": stopped}).recovered(2.0, 5)
    assert recovered.triggers["waiting"].pause == (3_602.0, 3_603.0)
    assert recovered.triggers["stopped"] == stopped
