"""Reduction: a failing run becomes the smallest run that fails in the same way.

Whole steps are left out first, by delta debugging (Zeller, Hildebrandt, TSE 2002): each step
keeps its own answers, so that leaving it out is one trial. Then Hypothesis, if it is
installed, simplifies the answers that are left; few steps are a size that it can handle. In
the end steps are left out again.

The time limit is processor time of this process, so that a busy machine changes nothing. A
campaign under a budget in seconds sets a limit on the wall clock as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Final

from powercut.fuzz.target_run import TargetRun

SECONDS: Final = 10
"""Processor time for one failure; the smallest run found by then is the result."""

_FIRST_PART: Final = 0.5
_LAST_PART: Final = 0.1
_FEW_STEPS: Final = 8


def reduced(failed: TargetRun, seconds: float = SECONDS, wall_seconds: float = inf) -> TargetRun:
    """Return the smallest run found that fails as ``failed`` did, or ``failed`` itself.

    It takes about ``seconds`` of processor time, and at most ``wall_seconds`` of the wall
    clock: the trial during which they end is completed.
    """
    assert failed.failure is not None, "only a failed run can be reduced"
    end, wall_end = time.process_time() + seconds, time.monotonic() + wall_seconds

    def over_before(left: float) -> Callable[[], bool]:
        return lambda: time.process_time() >= end - left or time.monotonic() >= wall_end

    run = without_steps(failed, over_before(seconds * (1 - _FIRST_PART)))
    run = _simplified(run, over_before(seconds * _LAST_PART))
    return without_steps(run, over_before(0))


def without_steps(failed: TargetRun, is_over: Callable[[], bool]) -> TargetRun:
    """Leave out steps as long as the run fails in the same way.

    Half of the steps at once are tried first, then ever fewer, in the end single ones, until
    no single one can be left out. Of few steps, all runs of consecutive ones are tried.
    No trial begins when ``is_over`` returns True.
    """
    run, width = failed, (len(failed.log.steps) + 1) // 2
    while width:
        is_small = len(run.log.steps) <= _FEW_STEPS
        shorter = _without_windows(run, width, 1 if is_small else width, is_over)
        if width > 1:
            width = min(width - 1 if is_small else width // 2, len(shorter.log.steps))
        elif shorter is run:
            break
        run = shorter
    return run


def _without_windows(
    run: TargetRun, width: int, stride: int, is_over: Callable[[], bool]
) -> TargetRun:
    """Try to leave out ``width`` consecutive steps, from the last ones to the first ones."""
    end = len(run.log.steps)
    while end > 0 and not is_over():
        steps = run.log.steps
        attempt = run.fresh()
        attempt.repeat_nearest((*steps[: max(0, end - width)], *steps[end:]))
        if attempt.log.fails_like(run.log) and len(attempt.log.steps) < len(steps):
            run = attempt
        end = min(end - stride, len(run.log.steps))
    return run


def _simplified(failed: TargetRun, is_over: Callable[[], bool]) -> TargetRun:
    """Let Hypothesis simplify the answers; without it, or without time, change nothing."""
    if is_over():
        return failed
    try:
        from powercut.fuzz.conjecture import simplified
    except ImportError:
        return failed
    return simplified(failed, is_over)
