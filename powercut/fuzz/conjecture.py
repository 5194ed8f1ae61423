"""Hypothesis's engine: choices that it draws, and its shrinker for the answers of a run.

The names that are used here are private to Hypothesis (``hypothesis_names``). With a version
that lacks one of them, importing this module raises ``ImportError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from random import Random
from typing import Final

from hypothesis import Phase, settings
from hypothesis.internal.conjecture.data import ConjectureData, ConjectureResult, Status
from hypothesis.internal.conjecture.engine import ConjectureRunner, RunIsComplete
from hypothesis.internal.escalation import InterestingOrigin
from hypothesis.reporting import with_reporter

from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target_mistake import TargetMistake
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, PlainChoices

if not hasattr(ConjectureRunner, "new_shrinker"):
    message = "this version of Hypothesis has another engine"
    raise ImportError(message)

MOST_RUNS: Final = 500
"""The runs that Hypothesis may use; half of the failures of a large system need fewer."""

_STEP: Final = 1
_STOPPING: Final = 2**-16
_SETTINGS: Final = settings(
    settings.get_profile("default"),
    database=None,
    deadline=None,
    phases=[Phase.shrink],
)
_PLAIN: Final = PlainChoices()


class DrawnChoices(Choices):
    """Choices that Hypothesis makes, and shrinks towards the low end.

    They are drawn from ``ConjectureData`` directly: one strategy for each integer would cost
    ten times as much.
    """

    __slots__ = ("_data",)

    def __init__(self, data: ConjectureData) -> None:
        self._data = data

    def integer(self, label: str, low: int, high: int) -> int:
        """Draw a number; one without an alternative is not drawn."""
        if low >= high:
            return _PLAIN.integer(label, low, high)
        return self._data.draw_integer(low, high)


def simplified(
    failed: TargetRun,
    is_over: Callable[[], bool],
    is_wanted: Callable[[TargetRun], bool],
) -> TargetRun:
    """Return the simplest run that Hypothesis finds, that fails as ``failed`` did and is wanted.

    Its shrinker begins with the answers of ``failed``, so no failure is searched for again.
    The number of runs is limited, so that the result is the same every time; ``is_over``
    ends the search where runs are long or the machine is slow. Returns ``failed`` if its
    answers do not repeat the failure.
    """
    origin = InterestingOrigin(Exception, failed.log.broken, None, (), ())

    def attempt(data: ConjectureData) -> None:
        if runner.call_count >= MOST_RUNS or is_over():
            # This is the last run: the engine stops after one that ends too late.
            runner.finish_shrinking_deadline = 0
        run = run_drawn(failed, data)
        if run.log.fails_like(failed.log) and is_wanted(run):
            data.mark_interesting(origin)

    runner = ConjectureRunner(attempt, settings=_SETTINGS, random=Random(0))
    # Hypothesis prints a warning when its time is up, which is expected here.
    with suppress(RunIsComplete), with_reporter(lambda _: None):
        first = runner.cached_test_function(answers_of(failed))
        if isinstance(first, ConjectureResult) and first.status is Status.INTERESTING:
            runner.new_shrinker(first, lambda data: data.status is Status.INTERESTING).shrink()
    found = runner.interesting_test_cases.get(origin)
    return failed if found is None else run_drawn(failed, ConjectureData.for_choices(found.choices))


def run_drawn(like: TargetRun, data: ConjectureData) -> TargetRun:
    """Run as many steps as ``like`` has, with choices drawn from ``data``.

    Steps at the beginning that were not proposed, such as the fault plan of a campaign, are
    repeated as they are. The run has no failure if the target cannot prepare a step.
    """
    run, steps = like.fresh(), like.log.steps
    given = list(_not_proposed(steps))

    def perform_steps() -> None:
        choices = DrawnChoices(data)
        for step in given:
            run.perform_nearest(step)
        for _ in steps[len(given) :]:
            data.start_span(_STEP)
            if data.draw_boolean(_STOPPING):
                break
            run.perform(run.propose(choices), choices)
            data.stop_span()

    with suppress(TargetMistake):
        run.complete(perform_steps)
    return run


def answers_of(failed: TargetRun) -> Sequence[int | bool]:
    """Return the answers with which ``run_drawn`` repeats ``failed``."""
    steps = failed.log.steps
    return [
        answer
        for step in steps[len(list(_not_proposed(steps))) :]
        for answer in (
            False,
            *(value for _, low, high, value in (*step.proposed, *step.chosen) if low < high),
        )
    ]


def _not_proposed(steps: Sequence[RecordedStep]) -> Iterator[RecordedStep]:
    return takewhile(lambda step: not step.proposed, steps)
