"""The shrinker: a failing run becomes the smallest run that fails in the same way.

Whole steps are left out first. The answers that the rest was given are handed to Hypothesis
as a choice sequence, so nothing is searched for twice: its shrinker begins at a run that
fails. In the end, whole steps are left out of what it gives back.

Hypothesis has so many runs, and all of it so many seconds of this process, whatever else the
machine does. The runs are bounded so that the result is the same every time; the clock has a
say only where runs are long or the machine is slow. Hypothesis's engine is a private door,
which the pinned version keeps open (``tests/unit/cli/test_shrinker.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from hypothesis import Phase, settings
from hypothesis.internal.conjecture.choice import ChoiceT
from hypothesis.internal.conjecture.data import ConjectureData, ConjectureResult, Status
from hypothesis.internal.conjecture.engine import ConjectureRunner, RunIsComplete
from hypothesis.internal.escalation import InterestingOrigin
from hypothesis.reporting import with_reporter

from powercut.fuzz.drivers.drawn import DrawnChoices
from powercut.fuzz.drivers.seeded_run import SeededRun
from powercut.fuzz.finding import failure_of, name_of
from powercut.fuzz.reduction.retelling import Trial, reduced, witnessed
from powercut.fuzz.reduction.shorten import shorten
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.errors import HarnessError

SECONDS: Final = 10
"""Shrinking one failure stops after so much of the processor, with the smallest run found then."""

MOST_RUNS: Final = 500
"""Hypothesis may do so many; half of the failures of the runtime need fewer."""

_REDUCING: Final = 0.5
_SHORTENING: Final = 0.1
_STEP: Final = 1
_STOPPING: Final = 2**-16
_SETTINGS: Final = settings(
    settings.get_profile("default"),
    database=None,
    deadline=None,
    phases=[Phase.shrink],
)


def shrink(run: SeededRun, seconds: float = SECONDS) -> tuple[TargetRun, Exception]:
    """Return the smallest run like ``run`` that was found, and what it raised.

    Doing ``run`` once more comes before the ``seconds``, which are as for ``smallest``; with
    none it is given back as it is. Raises ``HarnessError`` if ``run`` does not fail.
    """
    target_run = run.start()
    trial = witnessed(target_run, run.sources(target_run))
    if trial.failure is None:
        raise HarnessError(f"only a failing run can be shrunk, and seed={run.seed} passes")
    if not seconds:
        return trial.target_run, trial.failure
    return smallest(trial, run.start, run.make_target, seconds)


def smallest(
    trial: Trial,
    start: Callable[[], TargetRun],
    make_target: MakeTarget,
    seconds: float = SECONDS,
) -> tuple[TargetRun, Exception]:
    """Return the smallest run like ``trial`` that was found, and what it raised.

    ``start`` makes a fresh run, around what ``make_target`` returns. It takes ``seconds``
    of the processor; what is being tried when they are over comes to its end. Steps are left
    out first, for half of them, so that Hypothesis is given something that it can handle,
    however long the run was.
    """
    deadline = time.process_time() + seconds
    trial = reduced(trial, start, deadline - seconds * (1 - _REDUCING))
    assert trial.failure is not None
    target_run, failure = trial.target_run, trial.failure
    answers = _simplest(trial, start, deadline - seconds * _SHORTENING)
    if answers is not None:
        attempt = _Attempt(start(), len(trial.steps))
        attempt.perform(ConjectureData.for_choices(answers))
        assert attempt.failure is not None
        target_run, failure = attempt.target_run, attempt.failure
    return shorten(target_run, make_target, failure, deadline)


class _Attempt:
    """One run whose choices Hypothesis makes."""

    def __init__(self, target_run: TargetRun, steps: int) -> None:
        self.steps = steps
        self.target_run = target_run
        self.failure: Exception | None = None

    def perform(self, data: ConjectureData) -> None:
        """Draw and do step after step; keep what was raised."""
        try:
            self.failure = failure_of(lambda: self._steps(data))
        finally:
            self.target_run.abandon()

    def _steps(self, data: ConjectureData) -> None:
        choices = DrawnChoices(data)
        for _ in range(self.steps):
            data.start_span(_STEP)
            if data.draw_boolean(_STOPPING):
                break
            self.target_run.perform(self.target_run.propose(choices), choices)
            data.stop_span()
        self.target_run.finish()


def _answers(trial: Trial) -> Sequence[int | bool]:
    """Return what ``_Attempt`` must draw to repeat ``trial``."""
    return [answer for step in trial.steps for answer in (False, *step.drawn)]


def _simplest(
    trial: Trial, start: Callable[[], TargetRun], deadline: float
) -> Sequence[ChoiceT] | None:
    """Let Hypothesis shrink ``trial``; None if it cannot repeat the failure, or has no time."""
    if time.process_time() >= deadline:
        return None
    assert trial.failure is not None
    broken = name_of(trial.failure)
    origin = InterestingOrigin(Exception, broken, None, (), ())

    def attempt(data: ConjectureData) -> None:
        if runner.call_count >= MOST_RUNS or time.process_time() >= deadline:
            # This is the last run: its engine stops after one that ends too late.
            runner.finish_shrinking_deadline = 0
        tried = _Attempt(start(), len(trial.steps))
        tried.perform(data)
        if tried.failure is not None and name_of(tried.failure) == broken:
            data.mark_interesting(origin)

    runner = ConjectureRunner(attempt, settings=_SETTINGS, random=Random(0))
    # What Hypothesis says when its time is up is no news to the user.
    with suppress(RunIsComplete), with_reporter(lambda _: None):
        first = runner.cached_test_function(_answers(trial))
        if isinstance(first, ConjectureResult) and first.status is Status.INTERESTING:
            runner.new_shrinker(first, lambda data: data.status is Status.INTERESTING).shrink()
    found = runner.interesting_test_cases.get(origin)
    return None if found is None else found.choices
