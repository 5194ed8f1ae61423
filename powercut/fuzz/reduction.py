"""Reduction: a failing run becomes the smallest run that fails in the same way.

Whole steps are left out first, by delta debugging (Zeller, Hildebrandt, TSE 2002): each step
keeps its own answers, so that leaving it out is one trial. Then Hypothesis, if it is
installed, simplifies the answers that are left; few steps are a size that it can handle. In
the end steps are left out again, and then also single crashes and faults, with which Hypothesis
cannot do so: to it, an action without its fault is another action, with other answers.

The time limit is processor time of this process, so that a busy machine changes nothing. A
campaign under a budget in seconds sets a limit on the wall clock as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Final, TypeAlias, TypeVar

from faults.fault_plan import FaultPlan
from powercut.fuzz.action import CRASH_AND_RECOVER, Action
from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target_run import TargetRun

T = TypeVar("T")

IsWanted: TypeAlias = Callable[[TargetRun], bool]
"""Whether a run that fails in the same way may be the result."""

SECONDS: Final = 10
"""Processor time for one failure; the smallest run found by then is the result."""

_FIRST_PART: Final = 0.5
_LAST_PART: Final = 0.1
_FEW_STEPS: Final = 8


def any_failure(_run: TargetRun) -> bool:
    """Return True: every run that fails in the same way is wanted."""
    return True


def reduced(
    failed: TargetRun,
    seconds: float = SECONDS,
    wall_seconds: float = inf,
    is_wanted: IsWanted = any_failure,
) -> TargetRun:
    """Return the smallest run found that fails as ``failed`` did, or ``failed`` itself.

    Only a run that ``is_wanted`` is a result. It takes about ``seconds`` of processor time, and at
    most ``wall_seconds`` of the wall clock: the trial during which they end is completed.
    """
    assert failed.failure is not None, "only a failed run can be reduced"
    end, wall_end = time.process_time() + seconds, time.monotonic() + wall_seconds

    def over_before(left: float) -> Callable[[], bool]:
        return lambda: time.process_time() >= end - left or time.monotonic() >= wall_end

    run = without_steps(failed, over_before(seconds * (1 - _FIRST_PART)), is_wanted)
    run = _simplified(run, over_before(seconds * _LAST_PART), is_wanted)
    run = without_steps(run, over_before(0), is_wanted)
    return without_disturbances(run, over_before(0), is_wanted)


def without_steps(
    failed: TargetRun, is_over: Callable[[], bool], is_wanted: IsWanted = any_failure
) -> TargetRun:
    """Leave out steps as long as the run fails in the same way.

    Half of the steps at once are tried first, then ever fewer, in the end single ones, until
    no single one can be left out. Of few steps, all runs of consecutive ones are tried.
    No trial begins when ``is_over`` returns True.
    """
    run, width = failed, (len(failed.log.steps) + 1) // 2
    while width:
        is_small = len(run.log.steps) <= _FEW_STEPS
        shorter = _without_windows(run, width, 1 if is_small else width, is_over, is_wanted)
        if width > 1:
            width = min(width - 1 if is_small else width // 2, len(shorter.log.steps))
        elif shorter is run:
            break
        run = shorter
    return run


def _without_windows(
    run: TargetRun, width: int, stride: int, is_over: Callable[[], bool], is_wanted: IsWanted
) -> TargetRun:
    """Try to leave out ``width`` consecutive steps, from the last ones to the first ones."""
    end = len(run.log.steps)
    while end > 0 and not is_over():
        steps = run.log.steps
        attempt = _attempt(run, (*steps[: max(0, end - width)], *steps[end:]), is_wanted)
        if attempt is not None and len(attempt.log.steps) < len(steps):
            run = attempt
        end = min(end - stride, len(run.log.steps))
    return run


def without_disturbances(
    failed: TargetRun, is_over: Callable[[], bool], is_wanted: IsWanted = any_failure
) -> TargetRun:
    """Leave out single steps, crashes, faults and fault rules, from the last step to the first.

    Crashes and fault plans are data here, not answers. It begins again at the last step whenever
    the run has become smaller.
    """
    run, place = failed, len(failed.log.steps)
    while place > 0:
        place -= 1
        for steps in _with_less(run.log.steps, place):
            if is_over():
                return run
            attempt = _attempt(run, steps, is_wanted)
            if attempt is not None:
                run, place = attempt, len(attempt.log.steps)
                break
    return run


def _with_less(steps: Sequence[RecordedStep], place: int) -> Iterator[Sequence[RecordedStep]]:
    """Yield the steps without the one at ``place``, and with less of it."""
    given = [_as_given(step, step.action) for step in steps]
    before, step, after = given[:place], given[place], given[place + 1 :]
    yield [*before, *after]
    for action in _smaller(step.action):
        yield [*before, _as_given(step, action), *after]


def _as_given(step: RecordedStep, action: Action) -> RecordedStep:
    """Return the step with another action, whose crashes and faults are not proposed again."""
    return RecordedStep(action, step.proposed, step.chosen, is_disturbed_as_given=True)


def _smaller(action: Action) -> Iterator[Action]:
    """Yield the action that it wraps, and itself with one crash or one fault rule less."""
    if action.wrapped is not None:
        yield action.wrapped
    if action.fault_plan is not None:
        rules = FaultPlan.parse(action.fault_plan).rules
        for fewer_rules in _without_one(rules):
            yield Action(
                action.name, {**action.arguments, "plan": str(FaultPlan(tuple(fewer_rules)))}
            )
    if action.name == CRASH_AND_RECOVER:
        crashes = action.arguments["crashes"]
        assert isinstance(crashes, Sequence), action
        for fewer in _without_one(crashes):
            yield Action(action.name, {**action.arguments, "crashes": list(fewer)})


def _without_one(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values without one of them, from the last to the first, but not without any."""
    if len(values) > 1:
        for place in reversed(range(len(values))):
            yield [*values[:place], *values[place + 1 :]]


def _attempt(
    run: TargetRun, steps: Iterable[RecordedStep], is_wanted: IsWanted
) -> TargetRun | None:
    """Perform these steps; return the run if it fails as ``run`` did and is wanted."""
    attempt = run.fresh()
    attempt.repeat_nearest(steps)
    return attempt if attempt.log.fails_like(run.log) and is_wanted(attempt) else None


def _simplified(failed: TargetRun, is_over: Callable[[], bool], is_wanted: IsWanted) -> TargetRun:
    """Let Hypothesis simplify the answers; without it, or without time, change nothing."""
    if is_over():
        return failed
    try:
        from powercut.fuzz.conjecture import simplified
    except ImportError:
        return failed
    return simplified(failed, is_over, is_wanted)
