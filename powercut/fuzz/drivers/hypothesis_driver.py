"""The Hypothesis driver: a ``RuleBasedStateMachine`` for any target, and a campaign of it.

One rule does everything, because Hypothesis's rules have no weights: it draws the action
through ``Choices`` and performs it with more of the same. The class that pytest collects must
be an empty leaf below a class that names its target, because Hypothesis derives its database
key and its derandomized seed from the source of the leaf alone.

Failures are reduced by ``powercut.fuzz.reduction``, which leaves out whole steps before it
hands the rest to Hypothesis: one step of a large system is up to a hundred nested draws.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, reject, settings
from hypothesis.control import current_build_context
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.reporting import with_reporter
from hypothesis.stateful import (
    Rule,
    RuleBasedStateMachine,
    RuleStrategy,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import nothing

from powercut.fuzz.action import Action
from powercut.fuzz.conjecture import DrawnChoices
from powercut.fuzz.memory import settled
from powercut.fuzz.reduction import SECONDS, reduced
from powercut.fuzz.reproducer import FAILURES, Finding, keep
from powercut.fuzz.story import story
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget, MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.errors import HarnessError


@dataclass(frozen=True, slots=True)
class NextStep:
    """A step to be performed: the action, and the choices for performing it."""

    action: Action
    choices: Choices

    def __repr__(self) -> str:
        return str(self.action)


class _NextSteps(RuleStrategy):
    """Draws the next step of a run, for the one rule that performs it.

    It replaces Hypothesis's own choice among rules, which costs two draws a step even when
    there is only one. Its shrinker removes at most five draws at a time, so with fewer draws
    it removes more kinds of step at once.
    """

    def do_draw(self, data: ConjectureData) -> tuple[Rule, dict[str, Any]]:
        rules = data.hypothesis_runner
        assert isinstance(rules, TargetRules)
        choices = DrawnChoices(data)
        return self.rules[0], {"next_step": NextStep(rules.target_run.propose(choices), choices)}


@dataclass(slots=True)
class Campaign:
    """The counts and findings of the runs of one class; reproducers go to ``folder``.

    ``runs_to_failure`` is the number of the first run that failed, from 1, or 0.
    ``reduction_seconds`` is the processor time for reducing one failure. If ``properties`` are
    given, a run that fails in any other way is abandoned, and is no finding.
    """

    folder: Path = FAILURES
    reduction_seconds: float = SECONDS
    properties: Collection[str] = ()
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    runs_to_failure: int = 0

    def failed(self, run: int, failure: Exception) -> None:
        """Record that run number ``run`` has failed, or abandon it."""
        if self.properties and type(failure).__name__ not in self.properties:
            reject()
        self.runs_to_failure = self.runs_to_failure or run


class TargetRules(RuleBasedStateMachine):
    """A target under Hypothesis; a subclass names the target by ``make_target``."""

    model: ClassVar[PersistenceModel] = POSIX
    campaign: ClassVar[Campaign] = Campaign()

    def __init__(self) -> None:
        super().__init__()
        self.target_run = TargetRun(self.make_target, self.model)
        self._rules_strategy = _NextSteps(self)
        # Only a run whose last step has ended can finish.
        self._between_steps = True

    @staticmethod
    def make_target() -> AnyTarget:
        """Return a new target."""
        raise NotImplementedError

    @rule(next_step=nothing())
    def step(self, next_step: NextStep) -> None:
        """Perform one step."""
        self._between_steps = False
        try:
            self.target_run.perform(next_step.action, next_step.choices)
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs + 1, failure)
            self._report(failure)
            raise
        self._between_steps = True

    def teardown(self) -> None:
        """Finish the run, and count it."""
        self.campaign.tally.add(self.target_run.tally)
        if not self._between_steps:
            self.target_run.abandon()
            return
        try:
            self.target_run.finish()
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs, failure)
            self._report(failure)
            raise
        finally:
            self.target_run.abandon()

    def _report(self, failure: Exception) -> None:
        """Reduce a failure, write its reproducer, and add its story to the exception."""
        if isinstance(failure, HarnessError) or not current_build_context().is_final:
            return
        self.target_run.fail(failure)
        run = reduced(self.target_run, self.campaign.reduction_seconds)
        finding = keep(run, self.campaign.folder)
        self.campaign.findings.append(finding)
        failure.add_note(story(finding))


def fuzz(
    make_target: MakeTarget,
    model: PersistenceModel = POSIX,
    budget: settings | None = None,
    folder: Path = FAILURES,
    reduction_seconds: float = SECONDS,
    properties: Collection[str] = (),
) -> Campaign:
    """Fuzz a target with Hypothesis; the default ``budget`` is the current profile.

    Returns the counts and findings. The first failure, or the first of ``properties`` if some
    are given, is reduced, and its reproducer written to ``folder``. Raises a ``HarnessError`` of
    the harness itself.
    """
    campaign = Campaign(folder, reduction_seconds, properties)
    namespace = {
        "__doc__": "A machine under test.",
        "make_target": staticmethod(make_target),
        "model": model,
        "campaign": campaign,
    }
    leaf = type("MachineUnderTest", (TargetRules,), namespace)
    # Hypothesis's own shrinking would take minutes before the reduction.
    phases = [phase for phase in (budget or settings()).phases if phase is not Phase.shrink]
    # Failures of other kinds are rejected.
    checks = [HealthCheck.filter_too_much] if properties else []
    checks += (budget or settings()).suppress_health_check
    budget = settings(
        budget, report_multiple_bugs=False, phases=phases, suppress_health_check=checks
    )
    try:
        # The findings contain everything that Hypothesis would print.
        with with_reporter(lambda _: None), settled():
            run_state_machine_as_test(leaf, settings=budget)
    except Exception:
        if not campaign.findings:
            raise
    return campaign
