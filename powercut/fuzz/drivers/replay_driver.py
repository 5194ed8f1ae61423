"""The replay driver: the recorded actions and choices, and nothing else; no Hypothesis.

A replay ends in one of four ways: the same failure, a different one, none, or it meets a
question or an action that its recording does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from powercut.fuzz.finding import failure_of, name_of
from powercut.fuzz.step import Step
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from powercut.report.reproducer import RecordedStep, Reproducer, versions
from sim.choices import Diverged, ReplayChoices
from sim.disk.crash.persistence import model_named
from sim.trace import Trace


class Verdict(StrEnum):
    """How a replay ended."""

    SAME = "same failure"
    DIFFERENT = "a different failure"
    PASSES = "passes now"
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class Replay:
    """``identical``: the whole run was the recorded one, byte for byte.

    ``failure`` is what it raised, and ``steps`` what it did up to there.
    """

    verdict: Verdict
    steps: Sequence[Step]
    failure: Exception | None
    identical: bool

    def __str__(self) -> str:
        if self.failure is None:
            return f"{self.verdict}: {len(self.steps)} steps and the last look"
        said = f"{self.verdict} at step {len(self.steps)}"
        if self.verdict is Verdict.DIVERGED:
            return f"{said}: {self.failure}"
        exactly = ", byte for byte" if self.identical else ""
        return f"{said}{exactly}: {name_of(self.failure)}: {self.failure}"


def replay(reproducer: Reproducer, make_target: MakeTarget) -> Replay:
    """Run a reproducer again on a fresh machine around ``make_target``.

    Raises ``HarnessError`` for a persistence model that does not exist.
    """
    trace = Trace()
    target_run = TargetRun(make_target, model_named(reproducer.model), trace)
    failure = run_recorded(target_run, reproducer.steps)
    if failure is None:
        verdict = Verdict.PASSES
    elif isinstance(failure, Diverged):
        verdict = Verdict.DIVERGED
    elif name_of(failure) == reproducer.broken:
        verdict = Verdict.SAME
    else:
        verdict = Verdict.DIFFERENT
    return Replay(verdict, target_run.steps, failure, trace.digest() == reproducer.trace)


def record(target_run: TargetRun, make_target: MakeTarget, failure: Exception) -> Reproducer:
    """Make the reproducer of a run that failed, by running it once more with a trace."""
    steps = recorded(target_run)
    trace = Trace()
    run_recorded(TargetRun(make_target, target_run.model, trace), steps)
    return Reproducer(
        target=target_run.target.tag,
        model=target_run.model.name,
        broken=name_of(failure),
        statement=str(failure),
        steps=steps,
        faults=tuple(target_run.faults.seen),
        trace=trace.digest(),
        versions=versions(),
    )


def recorded(target_run: TargetRun) -> tuple[RecordedStep, ...]:
    """Return the steps that a machine did, as they stand in a reproducer."""
    return tuple(
        RecordedStep(
            step.action,
            tuple(step.chosen),
            tuple(str(crash.point) for crash in step.crashes),
            step.outcome,
        )
        for step in target_run.steps
    )


def run_recorded(target_run: TargetRun, steps: Sequence[RecordedStep]) -> Exception | None:
    """Let a fresh machine do the recorded steps and finish; return what it raised."""

    def run() -> None:
        for step in steps:
            choices = ReplayChoices(step.chosen)
            target_run.perform(step.action, choices)
            choices.finish()
        target_run.finish()

    try:
        return failure_of(run)
    except Diverged as diverged:
        return diverged
    finally:
        target_run.abandon()
