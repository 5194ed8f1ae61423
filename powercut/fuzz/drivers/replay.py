"""The replay driver: repeats the run of a reproducer, without Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from powercut.counted import counted
from powercut.fuzz.reproducer import Reproducer
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Diverged
from sim.disk.crash.persistence import model_named
from sim.trace import Trace


class Verdict(StrEnum):
    """The result of a replay.

    A replay has diverged if it asks a question that was not recorded, or comes to an action
    that is not possible. Recorded answers to questions that it does not ask are passed over.
    """

    SAME = "same failure"
    DIFFERENT = "a different failure"
    PASSES = "passes now"
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class Replay:
    """A repeated run; ``identical`` if it equals the recorded one byte for byte.

    ``divergence`` is the reason why it has diverged, else empty.
    """

    verdict: Verdict
    run: TargetRun
    identical: bool
    divergence: str = ""

    def __str__(self) -> str:
        log = self.run.log
        if self.verdict is Verdict.PASSES:
            steps = counted(len(log.steps), "step")
            return f"{self.verdict}: {steps} and the final checks{self._unused()}"
        at_step = f"{self.verdict} at step {len(log.steps)}"
        if self.verdict is Verdict.DIVERGED:
            return f"{at_step}: {self.divergence}"
        exactly = ", byte for byte" if self.identical else ""
        return f"{at_step}{exactly}: {log.broken}: {log.statement}{self._unused()}"

    def _unused(self) -> str:
        unused = self.run.unused
        were = "was" if unused == 1 else "were"
        answers = counted(unused, "recorded answer")
        return f" ({answers} {were} not asked for)" if unused else ""


def replay(reproducer: Reproducer, make_target: MakeTarget) -> Replay:
    """Repeat the run of a reproducer on a new target.

    Raises ``HarnessError`` for an unknown persistence model.
    """
    trace = Trace()
    run = TargetRun(make_target, model_named(reproducer.log.model), trace, with_places=True)
    try:
        run.repeat(reproducer.log)
    except Diverged as diverged:
        return Replay(Verdict.DIVERGED, run, identical=False, divergence=str(diverged))
    if run.failure is None:
        verdict = Verdict.PASSES
    elif run.log.broken == reproducer.log.broken:
        verdict = Verdict.SAME
    else:
        verdict = Verdict.DIFFERENT
    return Replay(verdict, run, trace.digest() == reproducer.trace)
