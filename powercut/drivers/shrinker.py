"""The shrinker: a failing seeded run becomes the smallest run that fails in the same way.

Whole steps are left out first. The answers that the rest was given are handed to Hypothesis
as a choice sequence, so nothing is searched for twice: its shrinker begins at a run that
fails. All of it is deterministic, as long as there is time. Hypothesis's engine is a private
door, which the pinned version keeps open (``tests/unit/cli/test_shrinker.py``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

from hypothesis import Phase, settings
from hypothesis.internal.conjecture.choice import ChoiceT
from hypothesis.internal.conjecture.data import ConjectureData, ConjectureResult, Status
from hypothesis.internal.conjecture.engine import ConjectureRunner, RunIsComplete
from hypothesis.internal.escalation import InterestingOrigin
from hypothesis.reporting import with_reporter

from powercut.drivers.hypothesis_driver import DrawnChoices
from powercut.drivers.retelling import Trial, reduced, witnessed
from powercut.drivers.seeded_run import SeededRun
from powercut.drivers.shorten import shorten
from powercut.finding import failure_of, name_of
from powercut.machine import Machine
from sim.errors import HarnessError

SECONDS: Final = 15
"""Shrinking one failure stops after so long, with the smallest run found by then."""

_STEP: Final = 1
_STOPPING: Final = 2**-16
_SETTINGS: Final = settings(
    settings.get_profile("default"),
    database=None,
    deadline=None,
    phases=[Phase.shrink],
)


def shrink(run: SeededRun, seconds: float = SECONDS) -> tuple[Machine, Exception]:
    """Return the smallest run like ``run`` that was found, and what it raised.

    Steps are left out first, for half of ``seconds`` at most, so that Hypothesis is given
    something that it can handle, however long the run was. With no ``seconds`` it is given
    back as it is. Raises ``HarnessError`` if ``run`` does not fail.
    """
    machine = run.start()
    trial = witnessed(machine, run.sources(machine))
    if trial.failure is None:
        raise HarnessError(f"only a failing run can be shrunk, and seed={run.seed} passes")
    if not seconds:
        return trial.machine, trial.failure
    started = time.monotonic()
    trial = reduced(trial, run.start, started + seconds / 2)
    assert trial.failure is not None
    machine, failure = trial.machine, trial.failure
    smallest = _smallest(run, trial, started + seconds - time.monotonic())
    if smallest is not None:
        attempt = _Attempt(run, len(trial.steps))
        attempt.perform(ConjectureData.for_choices(smallest))
        assert attempt.failure is not None
        machine, failure = attempt.machine, attempt.failure
    return shorten(machine, run.make_subject, failure)


class _Attempt:
    """One run whose choices Hypothesis makes."""

    def __init__(self, run: SeededRun, steps: int) -> None:
        self.steps = steps
        self.machine = run.start()
        self.failure: Exception | None = None

    def perform(self, data: ConjectureData) -> None:
        """Draw and do step after step; keep what was raised."""
        try:
            self.failure = failure_of(lambda: self._steps(data))
        finally:
            self.machine.abandon()

    def _steps(self, data: ConjectureData) -> None:
        choices = DrawnChoices(data)
        for _ in range(self.steps):
            data.start_span(_STEP)
            if data.draw_boolean(_STOPPING):
                break
            self.machine.perform(self.machine.propose(choices), choices)
            data.stop_span()
        self.machine.finish()


def _answers(trial: Trial) -> Sequence[int | bool]:
    """Return what ``_Attempt`` must draw to repeat ``trial``."""
    return [answer for step in trial.steps for answer in (False, *step.drawn)]


def _smallest(run: SeededRun, trial: Trial, seconds: float) -> Sequence[ChoiceT] | None:
    """Let Hypothesis shrink ``trial``; None if it cannot repeat the failure."""
    assert trial.failure is not None
    broken = name_of(trial.failure)
    origin = InterestingOrigin(Exception, broken, None, (), ())

    def attempt(data: ConjectureData) -> None:
        tried = _Attempt(run, len(trial.steps))
        tried.perform(data)
        if tried.failure is not None and name_of(tried.failure) == broken:
            data.mark_interesting(origin)

    runner = ConjectureRunner(attempt, settings=_SETTINGS, random=Random(0))
    first = runner.cached_test_function(_answers(trial))
    if not isinstance(first, ConjectureResult) or first.status is not Status.INTERESTING:
        return None
    runner.finish_shrinking_deadline = time.perf_counter() + seconds
    # What Hypothesis says when its time is up is no news to the user.
    with suppress(RunIsComplete), with_reporter(lambda _: None):
        runner.new_shrinker(first, lambda data: data.status is Status.INTERESTING).shrink()
    return runner.interesting_test_cases[origin].choices
