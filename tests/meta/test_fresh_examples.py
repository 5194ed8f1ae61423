"""No example of a state machine is a near copy of an earlier one."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import integers

from powercut.fuzz.hypothesis_names import missing_names
from powercut.fuzz.hypothesis_settings import draw_every_example_afresh

STEPS = 8


def runs_of_a_machine() -> list[tuple[int, ...]]:
    """The numbers that each run of a machine draws."""
    runs: list[list[int]] = []

    class Numbers(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            runs.append([])

        @rule(number=integers(0, 1 << 40))
        def step(self, number: int) -> None:
            runs[-1].append(number)

    budget = settings(
        max_examples=40, stateful_step_count=STEPS, derandomize=True, database=None, deadline=None
    )
    run_state_machine_as_test(Numbers, settings=budget)
    return [tuple(run) for run in runs if len(run) == STEPS]


def near_copies(runs: list[tuple[int, ...]]) -> int:
    """How many runs share more than half of their numbers with an earlier one."""
    return sum(
        any(len(set(run) & set(earlier)) > STEPS // 2 for earlier in runs[:place])
        for place, run in enumerate(runs)
    )


def test_no_run_is_a_near_copy_of_an_earlier_one() -> None:
    assert near_copies(runs_of_a_machine()) == 0


def test_a_hypothesis_that_mutates_elsewhere_is_left_as_it_is_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ConjectureRunner, "generate_mutations_from")
    draw_every_example_afresh()
    assert not hasattr(ConjectureRunner, "generate_mutations_from")
    (missing,) = missing_names()
    assert missing == (
        "Hypothesis has no hypothesis.internal.conjecture.engine.ConjectureRunner"
        ".generate_mutations_from: most examples are near copies of others"
    )
