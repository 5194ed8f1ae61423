"""Observations of a workload, which the check of a crash replays on a new shadow.

An observation is a function of the shadows that records one call, answer or return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from oracles.history import History, Known

Observation: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class _Observed:
    """An observation in the history of the workload: its ``number`` among ``all``."""

    all: Sequence[Observation]
    number: int


class Observer:
    """Adds the observations of a workload to its history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._observations: list[Observation] = []

    def attempt(self, observation: Observation) -> None:
        """Record that an effect may be durable from now on."""
        self._history.attempt(self._observed(observation))

    def acknowledge(self, observation: Observation) -> None:
        """Record that an effect must be durable from now on."""
        self._history(self._observed(observation))

    def end(self) -> None:
        """Record that no observation follows."""
        self._history.attempt(_Observed(self._observations, len(self._observations)))

    def _observed(self, observation: Observation) -> _Observed:
        self._observations.append(observation)
        return _Observed(self._observations, len(self._observations) - 1)


def replay_observations(known: Known, *shadows: Any) -> None:
    """Call all observations that were made before the crash with the shadows, in order."""
    # The last one in flight would have followed next.
    following = known.in_flight[-1]
    assert isinstance(following, _Observed)
    for observation in following.all[: following.number]:
        observation(*shadows)
