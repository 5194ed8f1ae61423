"""Retelling: a run done once more with some of its steps left out.

What a step was given is remembered as answers to questions, kinds of action by name. Where
a retold step asks differently, because the world is another one, the nearest answer is
given. Every retold run knows which plain answers lead to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from powercut.fuzz.action import ActionKind, KindChoices, place_of, weighted
from powercut.fuzz.finding import failure_of, name_of
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, Diverged


class Told(NamedTuple):
    """An answer: the number, or the name of the kind that was chosen."""

    label: str
    value: int
    kind: str = ""


class Witness(KindChoices):
    """Answers from ``source``; ``told`` remembers them, and ``drawn`` as plain numbers.

    What has no alternative is not in ``drawn``.
    """

    __slots__ = ("drawn", "source", "told")

    def __init__(self, source: Choices) -> None:
        self.source = source
        self.told: list[Told] = []
        self.drawn: list[int] = []

    def integer(self, label: str, low: int, high: int) -> int:
        """Pass a question on."""
        value = self.source.integer(label, low, high)
        self.told.append(Told(label, value))
        if low < high:
            self.drawn.append(value)
        return value

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Pass a question on."""
        kind = weighted(self.source, label, kinds)
        self.told.append(Told(label, 0, kind.name))
        if sum(kind.weight for kind in kinds) > 1:
            self.drawn.append(place_of(kind, kinds))
        return kind


class Retelling(KindChoices):
    """Gives the answers that were told, where they still fit; the simplest where none does."""

    __slots__ = ("_position", "_told")

    def __init__(self, told: Sequence[Told]) -> None:
        self._told = told
        self._position = 0

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the nearest number to the one that was told."""
        told = self._next(label)
        return low if told is None else max(low, min(told.value, high))

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Return the kind that was told; ``Diverged`` if it is not possible now."""
        told = self._next(label)
        for kind in kinds:
            if told is not None and kind.name == told.kind:
                return kind
        raise Diverged(self._position, label, "another kind")

    def _next(self, label: str) -> Told | None:
        for position in range(self._position, len(self._told)):
            if self._told[position].label == label:
                self._position = position + 1
                return self._told[position]
        return None


@dataclass(frozen=True, slots=True)
class Trial:
    """One run, what it raised, and what every step of it was given."""

    target_run: TargetRun
    failure: Exception | None
    steps: Sequence[Witness]

    def fails_as(self, broken: str) -> bool:
        """Whether it failed in this way."""
        return self.failure is not None and name_of(self.failure) == broken


def witnessed(target_run: TargetRun, sources: Iterable[Choices]) -> Trial:
    """Let a fresh machine do a step with each of ``sources``, and finish.

    A step that is not possible is left out.
    """
    done: list[Witness] = []

    def run() -> None:
        for source in sources:
            witness = Witness(source)
            try:
                action = target_run.propose(witness)
            except Diverged:
                continue
            done.append(witness)
            target_run.perform(action, witness)
        target_run.finish()

    try:
        return Trial(target_run, failure_of(run), done)
    except Diverged:
        return Trial(target_run, None, done)
    finally:
        target_run.abandon()


def reduced(trial: Trial, start: Callable[[], TargetRun], deadline: float) -> Trial:
    """Leave out steps as long as the run fails in the same way: many at once, then single ones.

    The rule is that of delta debugging (Zeller, Hildebrandt, TSE 2002). ``start`` makes a
    fresh machine; ``deadline`` is when to stop, as ``time.process_time()`` tells it.
    """
    assert trial.failure is not None
    broken = name_of(trial.failure)
    width = (len(trial.steps) + 1) // 2
    while width:
        before = trial
        end = len(trial.steps)
        while end > 0 and time.process_time() < deadline:
            steps = trial.steps
            kept = (*steps[: max(0, end - width)], *steps[end:])
            attempt = witnessed(start(), (Retelling(step.told) for step in kept))
            if attempt.fails_as(broken) and len(attempt.steps) < len(steps):
                trial = attempt
            end = min(end - width, len(trial.steps))
        if time.process_time() >= deadline:
            break
        width = width // 2 if width > 1 else int(trial is not before)
    return trial
