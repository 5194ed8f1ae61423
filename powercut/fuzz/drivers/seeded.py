"""The plain driver: a seed, a number of steps, and nothing in between."""

from __future__ import annotations

from powercut.fuzz.finding import failure_of
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, SeededChoices


def run_seeded(target_run: TargetRun, seed: int, steps: int) -> Exception | None:
    """Let a fresh machine do ``steps`` actions and finish; return what it raised, or None.

    The same seed repeats the run. ``target_run.steps`` then tells what was done.
    """
    try:
        return failure_of(lambda: _run(target_run, SeededChoices(seed), steps))
    finally:
        target_run.abandon()


def _run(target_run: TargetRun, choices: Choices, steps: int) -> None:
    for _ in range(steps):
        target_run.perform(target_run.propose(choices), choices)
    target_run.finish()
