"""Shortening: leave out steps of a failing run, as long as it still fails in the same way.

Hypothesis shrinks choices, few at a time, and is stuck where two steps can go only
together. Whole steps are cheap to leave out, because each keeps its own choices. The rule
is that of delta debugging (Zeller, Hildebrandt, TSE 2002): wide gaps first, then narrow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf

from powercut.fuzz.drivers.replay_driver import recorded, run_recorded
from powercut.fuzz.finding import name_of
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from powercut.report.reproducer import RecordedStep
from sim.choices import Diverged


def shorten(
    target_run: TargetRun, make_target: MakeTarget, failure: Exception, deadline: float = inf
) -> tuple[TargetRun, Exception]:
    """Return a run with as few of the steps of ``machine`` as still fail, and what it raised.

    A run that does not even repeat its own failure is returned as it is. ``deadline`` is when
    to stop, as ``time.process_time()`` tells it.
    """
    shortest, told = target_run, failure
    steps = recorded(target_run)
    width = max(1, len(steps) // 2)
    while width:
        start = len(steps) - width
        while start >= 0 and time.process_time() < deadline:
            fewer = (*steps[:start], *steps[start + width :])
            attempt = _fails(fewer, target_run, make_target, failure)
            if attempt is not None:
                shortest, told = attempt
                steps = recorded(shortest)
                start = min(start, len(steps) - width)
            else:
                start -= 1
        width -= 1
    return shortest, told


def _fails(
    steps: Sequence[RecordedStep], like: TargetRun, make_target: MakeTarget, failure: Exception
) -> tuple[TargetRun, Exception] | None:
    """Do these steps; return the run if it failed like ``failure``."""
    target_run = TargetRun(make_target, like.model)
    raised = run_recorded(target_run, steps)
    if raised is None or isinstance(raised, Diverged) or name_of(raised) != name_of(failure):
        return None
    return target_run, raised
