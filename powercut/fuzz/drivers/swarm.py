"""The swarm driver: runs from seeds, each with its own choice of actions and faults.

A run that may do everything does a little of everything, and its actions get in each other's
way; leaving some out lets a run go far with the others (Groce, Zhang, Eide, Chen, Regehr:
Swarm Testing, ISSTA 2012). So most runs leave out some kinds of action and of fault, and
give others more weight.

A swarm only biases the answers to the questions of the run. A reproducer needs no trace of
it, and Hypothesis can draw the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from powercut.fuzz.action import (
    CRASH_AND_RECOVER,
    FAULT_ON,
    Action,
    ActionKind,
    KindChoices,
    weighted,
)
from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import FAULTS, TargetRun
from sim.choices import Choices, PlainChoices, SeededChoices
from sim.disk.crash.persistence import PersistenceModel
from sim.trace import Trace

_KILLS: Final = (0,)
_POWER_CUTS: Final = (1, 2, 3)
_FACTORS: Final = (1, 1, 2, 4, 16)
_SCALE: Final = 2
_LONG: Final = 10
_VERY_LONG: Final = 40
_SHORT: Final = 6
_DRAWN_LENGTHS: Final = 6000


@dataclass(frozen=True, slots=True)
class SeededRun:
    """One run of a campaign, as the few values that determine it.

    ``steps`` actions are drawn from ``seed``. With ``swarm``, the seed also draws the bias of
    the run; with ``various`` as well, its number of steps, which is mostly ``steps``.
    ``prefix`` are recorded steps that are performed first, up to one that is not possible.
    ``at_most`` bounds the number of all steps, those of ``prefix`` included. ``faults`` is a fault
    plan in printed form, put in force before the first action; if it is empty, the run begins
    without faults.
    """

    make_target: MakeTarget
    model: PersistenceModel
    seed: int
    steps: int
    faults: str = ""
    swarm: bool = False
    various: bool = False
    at_most: int | None = None
    prefix: Sequence[RecordedStep] = ()

    def run(
        self, is_over: Callable[[TargetRun], bool] = lambda _run: False, trace: Trace | None = None
    ) -> TargetRun:
        """Perform the steps and finish; return the run, with its failure if it has failed.

        No further step begins when ``is_over``, which is given the run, returns True.
        """
        run = TargetRun(self.make_target, self.model, trace)

        def perform_steps() -> None:
            if self.faults:
                run.perform(Action(FAULT_ON, {"plan": self.faults}), PlainChoices())
            for step in self.prefix[: self.at_most]:
                if is_over(run) or not run.perform_if_possible(step):
                    break
            for choices in self._choices(run):
                if is_over(run):
                    break
                run.perform(run.propose(choices), choices)

        run.complete(perform_steps)
        return run

    def _choices(self, run: TargetRun) -> Iterator[Choices]:
        """Yield the choices of each step."""
        choices: Choices = SeededChoices(self.seed)
        steps = self.steps
        if self.swarm:
            swarm = draw_swarm(choices, run, self.steps)
            choices = SwarmChoices(choices, swarm)
            steps = swarm.steps if self.various else steps
        if self.at_most is not None:
            steps = min(steps, self.at_most - len(run.log.steps) + bool(self.faults))
        yield from repeat(choices, steps)

    def bias(self) -> str:
        """Return the swarm's bias in one line; empty if there is no swarm."""
        if not self.swarm:
            return ""
        run = TargetRun(self.make_target, self.model)
        try:
            return str(draw_swarm(SeededChoices(self.seed), run, self.steps))
        finally:
            run.abandon()


@dataclass(frozen=True, slots=True)
class Swarm:
    """The bias of one run.

    ``weights`` are the weights of all kinds of action, by name; 0 leaves one out. ``answers``
    maps labels to the only answers that are given; labels that it lacks are not biased.
    """

    steps: int
    weights: Mapping[str, int]
    answers: Mapping[str, Sequence[int]]

    def __str__(self) -> str:
        weights = " ".join(f"{name}:{weight}" for name, weight in self.weights.items())
        answers = "; ".join(
            f"{label} only {','.join(map(str, answers))}" for label, answers in self.answers.items()
        )
        return f"{self.steps} steps; {weights}" + (f"; {answers}" if answers else "")


def draw_swarm(choices: Choices, run: TargetRun, steps: int) -> Swarm:
    """Draw the bias of ``run``; most runs have ``steps`` steps."""
    length = _length(choices, steps)
    if not choices.integer("swarm", 0, 3):
        # One run in four does everything, with the weights of the kinds themselves.
        return Swarm(length, {kind.name: kind.weight for kind in run.kinds}, {})
    weights = _weights(choices, run.kinds)
    answers: dict[str, Sequence[int]] = {}
    crashes = choices.integer("crashes", 0, 7)
    if crashes == 7 and CRASH_AND_RECOVER in weights:
        weights[CRASH_AND_RECOVER] = 0
    elif crashes >= 4:
        answers["kind"] = _KILLS if crashes == 4 else _POWER_CUTS
    if not choices.integer("in order", 0, 3):
        answers["schedule"] = (0,)
    for label, options in run.features.items():
        answers |= _some(choices, label, options)
    return Swarm(length, weights, answers)


def _length(choices: Choices, steps: int) -> int:
    """Draw a number of steps; all long runs together cost as much as a hundred others."""
    drawn = choices.integer("length", 1, _DRAWN_LENGTHS)
    if drawn == _DRAWN_LENGTHS:
        return steps * _VERY_LONG
    if drawn > _DRAWN_LENGTHS - _DRAWN_LENGTHS // 200:
        return steps * _LONG
    return steps if drawn > _DRAWN_LENGTHS // 5 else max(1, steps // _SHORT)


def _weights(choices: Choices, kinds: Sequence[ActionKind]) -> dict[str, int]:
    """Draw the weight of each kind, 0 for some; the first, the simplest, is never left out."""
    out = choices.integer("out of 8", 0, 4)
    faults = choices.integer("faults", 0, 3)
    weights: dict[str, int] = {}
    for number, kind in enumerate(kinds):
        left_out = (
            choices.integer("leave out", 0, 7) < out and number and kind.name != CRASH_AND_RECOVER
        )
        if left_out or (not faults and kind.name in FAULTS):
            weights[kind.name] = 0
        else:
            factor = choices.pick("factor", _FACTORS)
            # Half of its weight, its weight, or a multiple of it.
            weights[kind.name] = max(1, kind.weight * factor // _SCALE)
    return weights


def _some(choices: Choices, label: str, options: int) -> dict[str, Sequence[int]]:
    """Draw the answers to ``label`` that are given: all of them, or about half."""
    if options < 2 or not choices.integer(label, 0, 1):
        return {}
    chosen = [number for number in range(options) if choices.integer(label, 0, 1)]
    return {label: tuple(chosen or [choices.integer(label, 0, options - 1)])}


class SwarmChoices(KindChoices):
    """Answers from ``source``, biased by ``swarm``."""

    __slots__ = ("_source", "_swarm")

    def __init__(self, source: Choices, swarm: Swarm) -> None:
        self._source = source
        self._swarm = swarm

    def integer(self, label: str, low: int, high: int) -> int:
        """Return one of the given answers; if none is in the range, any in the range."""
        answers = self._swarm.answers.get(label)
        if answers is not None:
            possible = [answer for answer in answers if low <= answer <= high]
            if possible:
                return possible[self._source.integer(label, 0, len(possible) - 1)]
        return self._source.integer(label, low, high)

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Choose by the weights of the swarm; if all are 0, by the kinds' own."""
        weights = [self._swarm.weights[kind.name] for kind in kinds]
        total = sum(weights)
        if not total:
            return weighted(self._source, label, kinds)
        number = self._source.integer(label, 1, total)
        for kind, weight in zip(kinds, weights, strict=True):
            number -= weight
            if number <= 0:
                return kind
        raise AssertionError("weights are positive")
