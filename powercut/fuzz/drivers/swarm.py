"""Swarms: what a run is about, drawn before it begins, so that runs differ in kind.

A run that may do everything does a little of everything, and each action gets in the way
of the others: what a run leaves out is what lets it go far elsewhere (Groce, Zhang, Eide,
Chen, Regehr: Swarm Testing, ISSTA 2012). So most runs leave out some kinds of action and
of fault, and give others more weight.

A swarm only biases the answers to the machine's own questions. It needs no place in a
reproducer, and the answers that it led to can be given by Hypothesis as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from powercut.fuzz.action import ActionKind, KindChoices, weighted
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices

_CRASH: Final = "crash_and_recover"
_KILLS: Final = (0,)
_POWER_CUTS: Final = (1, 2, 3)
_FACTORS: Final = (1, 1, 2, 4, 16)
_SCALE: Final = 2
_LONG: Final = 10
_VERY_LONG: Final = 40
_SHORT: Final = 6
_DRAWN_LENGTHS: Final = 6000


@dataclass(frozen=True, slots=True)
class Swarm:
    """What one run is about.

    ``weights``: the weight of every kind of action, by name; 0 leaves it out. ``answers``:
    for some labels, the only answers that are in; for other labels all are.
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


def draw_swarm(choices: Choices, target_run: TargetRun, steps: int) -> Swarm:
    """Draw what a run of ``machine`` is about; most have ``steps`` steps."""
    length = _length(choices, steps)
    if not choices.integer("swarm", 0, 3):
        # One in four does everything, as the machine itself weighs it.
        return Swarm(length, {kind.name: kind.weight for kind in target_run.kinds}, {})
    weights = _weights(choices, target_run)
    answers: dict[str, Sequence[int]] = {}
    crashes = choices.integer("crashes", 0, 7)
    if crashes == 7 and _CRASH in weights:
        weights[_CRASH] = 0
    elif crashes >= 4:
        answers["kind"] = _KILLS if crashes == 4 else _POWER_CUTS
    if not choices.integer("in order", 0, 3):
        answers["schedule"] = (0,)
    for label, options in target_run.features.items():
        answers |= _some(choices, label, options)
    return Swarm(length, weights, answers)


def _length(choices: Choices, steps: int) -> int:
    """Draw how many steps; the whole of a long run costs as much as a hundred others."""
    drawn = choices.integer("length", 1, _DRAWN_LENGTHS)
    if drawn == _DRAWN_LENGTHS:
        return steps * _VERY_LONG
    if drawn > _DRAWN_LENGTHS - _DRAWN_LENGTHS // 200:
        return steps * _LONG
    return steps if drawn > _DRAWN_LENGTHS // 5 else max(1, steps // _SHORT)


def _weights(choices: Choices, target_run: TargetRun) -> dict[str, int]:
    """Draw which kinds are in, and how heavy; the first, the simplest, is always in."""
    out = choices.integer("out of 8", 0, 4)
    faults = choices.integer("faults", 0, 3)
    weights: dict[str, int] = {}
    for number, kind in enumerate(target_run.kinds):
        left_out = choices.integer("leave out", 0, 7) < out and number and kind.name != _CRASH
        if left_out or (not faults and kind.name in target_run.FAULTS):
            weights[kind.name] = 0
        else:
            factor = choices.pick("factor", _FACTORS)
            # Half of what it weighs, as it weighs, or several times as much.
            weights[kind.name] = max(1, kind.weight * factor // _SCALE)
    return weights


def _some(choices: Choices, label: str, options: int) -> dict[str, Sequence[int]]:
    """Draw the answers to ``label`` that are in: all of them, or about half."""
    if options < 2 or not choices.integer(label, 0, 1):
        return {}
    chosen = [number for number in range(options) if choices.integer(label, 0, 1)]
    return {label: tuple(chosen or [choices.integer(label, 0, options - 1)])}


class SwarmChoices(KindChoices):
    """Answers from ``source``, as ``swarm`` biases them."""

    __slots__ = ("_source", "_swarm")

    def __init__(self, source: Choices, swarm: Swarm) -> None:
        self._source = source
        self._swarm = swarm

    def integer(self, label: str, low: int, high: int) -> int:
        """Return an answer that is in; where none is, any."""
        answers = self._swarm.answers.get(label)
        if answers is not None:
            possible = [answer for answer in answers if low <= answer <= high]
            if possible:
                return possible[self._source.integer(label, 0, len(possible) - 1)]
        return self._source.integer(label, low, high)

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Choose by the weights of the swarm; where no kind is in, by their own."""
        weights = [self._swarm.weights[kind.name] for kind in kinds]
        total = sum(weights)
        if not total:
            return weighted(self._source, label, kinds)
        place = self._source.integer(label, 1, total)
        for kind, weight in zip(kinds, weights, strict=True):
            place -= weight
            if place <= 0:
                return kind
        raise AssertionError("weights are positive")
