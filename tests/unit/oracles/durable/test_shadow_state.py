"""Names that the shadow gives to triggers of the system."""

from __future__ import annotations

from oracles.durable.shadow_state import ExpectedTask, ExpectedTrigger, State

KEY = "resume:task"


def test_the_next_resume_of_a_task_has_a_name_that_no_earlier_one_has() -> None:
    """The first of two triggers with this key was removed, and its name is free."""
    settled = ExpectedTrigger(KEY, "session", 1.0, 5, None, status="DONE")
    state = State(
        triggers={f"{KEY} #1": settled}, tasks={"task": ExpectedTask("session", "ACTIVE", 1, None)}
    )
    resumed = state.resumed(2.0, 0.0)
    assert set(resumed.triggers) == {f"{KEY} #0", f"{KEY} #1"}
    assert resumed.triggers[f"{KEY} #1"] == settled
