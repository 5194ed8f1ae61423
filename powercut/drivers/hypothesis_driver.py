"""The Hypothesis driver: a ``RuleBasedStateMachine`` made from any machine, and a campaign of it.

One rule does everything, because Hypothesis's rules have no weights: it draws the action
through ``Choices``, and performs it with more of the same. The class that pytest collects
must be an empty leaf below a class that names its subject, because Hypothesis derives its
database key and its derandomized seed from the source of the leaf alone.

Choices are drawn from ``ConjectureData`` directly: a strategy per integer would cost ten
times as much. That is a private door, which the pinned version keeps open
(``tests/unit/machines/test_hypothesis_driver.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from hypothesis import settings
from hypothesis.control import current_build_context
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.stateful import (
    Rule,
    RuleBasedStateMachine,
    RuleStrategy,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import nothing

from powercut.action import Action
from powercut.drivers.replay_driver import record
from powercut.drivers.shorten import shorten
from powercut.machine import Machine
from powercut.reproducer import FAILURES, Reproducer, write_reproducer
from powercut.story import story
from powercut.subject import MakeSubject, Subject
from powercut.tally import Tally
from sim.choices import Choices, PlainChoices
from sim.disk.persistence import POSIX, PersistenceModel
from sim.errors import HarnessError

_PLAIN: Final = PlainChoices()


class DrawnChoices(Choices):
    """Choices that Hypothesis makes, and shrinks towards the low end."""

    __slots__ = ("_data",)

    def __init__(self, data: ConjectureData) -> None:
        self._data = data

    def integer(self, label: str, low: int, high: int) -> int:
        """Draw a number; one that has no alternative costs nothing."""
        if low >= high:
            return _PLAIN.integer(label, low, high)
        return self._data.draw_integer(low, high)


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
        machine_rules = data.hypothesis_runner
        assert isinstance(machine_rules, MachineRules)
        choices = DrawnChoices(data)
        turn = Turn(machine_rules.machine.propose(choices), choices)
        return self.rules[0], {"turn": turn}


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, shrunk: what was raised, in which run, and the file that repeats it."""

    failure: Exception
    machine: Machine
    reproducer: Reproducer
    path: Path

    @property
    def story(self) -> str:
        """The failure as a page of text."""
        reproducer = self.reproducer
        return story(
            self.machine.steps, self.failure, reproducer.model, reproducer.fingerprint, self.path
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


class MachineRules(RuleBasedStateMachine):
    """Any machine under Hypothesis; a class below names its subject by ``make_subject``."""

    model: ClassVar[PersistenceModel] = POSIX
    campaign: ClassVar[Campaign] = Campaign()

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(self.make_subject, self.model)
        self._rules_strategy = _Turns(self)
        # Only a run that stands between two steps can finish.
        self._between_steps = True

    @staticmethod
    def make_subject() -> Subject:
        """Return a fresh subject."""
        raise NotImplementedError

    @rule(turn=nothing())
    def step(self, turn: Turn) -> None:
        """Do one step."""
        self._between_steps = False
        try:
            self.machine.perform(turn.action, turn.choices)
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs + 1)
            self._report(failure)
            raise
        self._between_steps = True

    def teardown(self) -> None:
        """Take the last look, and count the run."""
        self.campaign.tally.add(self.machine.tally)
        if not self._between_steps:
            self.machine.abandon()
            return
        try:
            self.machine.finish()
        except Exception as failure:
            self.campaign.failed(self.campaign.tally.runs)
            self._report(failure)
            raise
        finally:
            self.machine.abandon()

    def _report(self, failure: Exception) -> None:
        """Keep a failure once it is shrunk, and let whoever prints it print its story."""
        if isinstance(failure, HarnessError) or not current_build_context().is_final:
            return
        machine, told = shorten(self.machine, self.make_subject, failure)
        reproducer = record(machine, self.make_subject, told)
        path = write_reproducer(reproducer, self.campaign.folder)
        finding = Finding(told, machine, reproducer, path)
        self.campaign.findings.append(finding)
        failure.add_note(finding.story)


def fuzz(
    make_subject: MakeSubject,
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
        "make_subject": staticmethod(make_subject),
        "model": model,
        "campaign": campaign,
    }
    leaf = type("MachineUnderTest", (MachineRules,), namespace)
    try:
        run_state_machine_as_test(leaf, settings=settings(budget, report_multiple_bugs=False))
    except Exception:
        if not campaign.findings:
            raise
    return campaign
