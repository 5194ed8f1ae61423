"""The Hypothesis driver: a ``RuleBasedStateMachine`` for any target, and a campaign of it.

One rule does everything, because Hypothesis's rules have no weights: it draws the action
through ``Choices``, and performs it with more of the same. The class that pytest collects
must be an empty leaf below a class that names its target, because Hypothesis derives its
database key and its derandomized seed from the source of the leaf alone.

What fails is made small by the shrinker of this house, which leaves out whole steps before
Hypothesis has its say: a step of the runtime is up to a hundred draws, and nested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import Phase, settings
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
from powercut.fuzz.drivers.drawn import DrawnChoices
from powercut.fuzz.drivers.replay_driver import record
from powercut.fuzz.memory import settled
from powercut.fuzz.reduction.retelling import Trial, Witness
from powercut.fuzz.reduction.shrinker import smallest
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget, MakeTarget
from powercut.fuzz.target_run import TargetRun
from powercut.report.reproducer import FAILURES, Reproducer, write_reproducer
from powercut.report.story import story
from sim.choices import Choices
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Turn:
    """One step to be done: the action, and where performing it gets its choices from."""

    action: Action
    choices: Choices

    def __repr__(self) -> str:
        return str(self.action)


class _Turns(RuleStrategy):
    """Draws the next step of the machine that is running, and the one rule that does it.

    It stands for Hypothesis's own choice among rules, which costs two draws a step even
    when there is one. The shrinker takes out at most five draws at a time, so each draw
    less is a kind of step more that it can take out whole.
    """

    def do_draw(self, data: ConjectureData) -> tuple[Rule, dict[str, Any]]:
        rules = data.hypothesis_runner
        assert isinstance(rules, TargetRules)
        choices = rules.choices(data)
        turn = Turn(rules.target_run.propose(choices), choices)
        return self.rules[0], {"turn": turn}


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, shrunk: what was raised, in which run, and the file that repeats it."""

    failure: Exception
    target_run: TargetRun
    reproducer: Reproducer
    path: Path

    @property
    def story(self) -> str:
        """The failure as a page of text."""
        reproducer = self.reproducer
        return story(
            self.target_run.steps, self.failure, reproducer.model, reproducer.fingerprint, self.path
        )


@dataclass(slots=True)
class Campaign:
    """What the runs of one class did and found; reproducers go to ``folder``.

    ``runs_to_failure``: which run was the first to fail, from 1, or 0 if none did.
    """

    folder: Path = FAILURES
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    runs_to_failure: int = 0

    def failed(self, run: int) -> None:
        """Note that this run failed, if it is the first."""
        self.runs_to_failure = self.runs_to_failure or run


class TargetRules(RuleBasedStateMachine):
    """Any machine under Hypothesis; a class below names its target by ``make_target``."""

    model: ClassVar[PersistenceModel] = POSIX
    campaign: ClassVar[Campaign] = Campaign()

    def __init__(self) -> None:
        super().__init__()
        self.target_run = self._start()
        self._told: list[Witness] = []
        self._rules_strategy = _Turns(self)
        # Only a run that stands between two steps can finish.
        self._between_steps = True

    @staticmethod
    def make_target() -> AnyTarget:
        """Return a fresh target."""
        raise NotImplementedError

    def choices(self, data: ConjectureData) -> Choices:
        """Return what the next step has its choices from; the last run of a failure is told."""
        drawn = DrawnChoices(data)
        if not current_build_context().is_final:
            return drawn
        self._told.append(Witness(drawn))
        return self._told[-1]

    @rule(turn=nothing())
    def step(self, turn: Turn) -> None:
        """Do one step."""
        self._between_steps = False
        try:
            self.target_run.perform(turn.action, turn.choices)
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs + 1)
            self._report(failure)
            raise
        self._between_steps = True

    def teardown(self) -> None:
        """Take the last look, and count the run."""
        self.campaign.tally.add(self.target_run.tally)
        if not self._between_steps:
            self.target_run.abandon()
            return
        try:
            self.target_run.finish()
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs)
            self._report(failure)
            raise
        finally:
            self.target_run.abandon()

    def _start(self) -> TargetRun:
        return TargetRun(self.make_target, self.model)

    def _report(self, failure: Exception) -> None:
        """Shrink a failure and keep it, and let whoever prints it print its story."""
        if isinstance(failure, HarnessError) or not current_build_context().is_final:
            return
        trial = Trial(self.target_run, failure, self._told)
        target_run, told = smallest(trial, self._start, self.make_target)
        reproducer = record(target_run, self.make_target, told)
        path = write_reproducer(reproducer, self.campaign.folder)
        finding = Finding(told, target_run, reproducer, path)
        self.campaign.findings.append(finding)
        failure.add_note(finding.story)


def fuzz(
    make_target: MakeTarget,
    model: PersistenceModel = POSIX,
    budget: settings | None = None,
    folder: Path = FAILURES,
) -> Campaign:
    """Run a machine under Hypothesis; ``budget`` left out is the current profile.

    Returns what was done and found; the first failure is shrunk, and its reproducer written
    to ``folder``. Raises what the harness itself raises.
    """
    campaign = Campaign(folder)
    namespace = {
        "__doc__": "A machine under test.",
        "make_target": staticmethod(make_target),
        "model": model,
        "campaign": campaign,
    }
    leaf = type("MachineUnderTest", (TargetRules,), namespace)
    # Hypothesis would shrink first, for minutes, what is shrunk here anyway.
    phases = [phase for phase in (budget or settings()).phases if phase is not Phase.shrink]
    budget = settings(budget, report_multiple_bugs=False, phases=phases)
    try:
        # What Hypothesis would print is in the findings.
        with with_reporter(lambda _: None), settled():
            run_state_machine_as_test(leaf, settings=budget)
    except Exception:
        if not campaign.findings:
            raise
    return campaign
