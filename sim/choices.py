"""The single source of everything that could differ between two runs.

Whoever needs a decision asks ``Choices`` for a whole number in a range; nobody draws
from a clock, a random module or an address. The simplest decision is the lowest number:
no fault, nothing lost, first in line. So the plainest run is all lows, and shrinking a
failing run towards lows removes trouble.

Left out: weights and distributions. Who wants them maps a plain number to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from sim.errors import HarnessError

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


class Choices(Protocol):
    """Answers every question that a run asks; the same answers give the same run."""

    def integer(self, label: str, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included; ``low`` is the simplest."""
        ...

    def pick(self, label: str, options: Sequence[T]) -> T:
        """Return one of ``options``, of which there is at least one; the first is the simplest."""
        return options[self.integer(label, 0, len(options) - 1)]


class Chosen(NamedTuple):
    """One answered question, as it is kept in a reproducer."""

    label: str
    low: int
    high: int
    value: int


class Diverged(HarnessError):
    """A replay met a question that its recording does not answer.

    Cause: the program under test, or the machine, changed since the recording, so that
    the run took another way. Cure: none is needed if the failure was fixed; else record
    the failure again. ``position`` counts the answers used so far, from 0.
    """

    def __init__(self, position: int, asked: str, recorded: str) -> None:
        super().__init__(f"replay diverged at choice {position}: asked={asked} recorded={recorded}")
        self.position = position
        self.asked = asked
        self.recorded = recorded


def _empty(label: str, low: int, high: int) -> HarnessError:
    return HarnessError(f"nothing to choose from: {label}[{low}..{high}]")


class PlainChoices(Choices):
    """The plainest run: always the simplest answer."""

    def integer(self, label: str, low: int, high: int) -> int:
        """Return ``low``; ``HarnessError`` if the range is empty."""
        if low > high:
            raise _empty(label, low, high)
        return low


class SeededChoices(Choices):
    """Answers from a generator of our own (SplitMix64; Steele et al., OOPSLA 2014).

    The same seed gives the same answers on every machine and Python version.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def integer(self, label: str, low: int, high: int) -> int:
        """Return a number that is evenly spread over the range; ``HarnessError`` if it is empty."""
        if low > high:
            raise _empty(label, low, high)
        self._state = state = (self._state + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
        return low + ((state * (high - low + 1)) >> 64)


class RecordingChoices(Choices):
    """Passes every question on to ``source`` and adds what was answered to ``chosen``."""

    __slots__ = ("chosen", "source")

    def __init__(self, source: Choices, chosen: list[Chosen] | None = None) -> None:
        self.source = source
        self.chosen: list[Chosen] = [] if chosen is None else chosen

    def integer(self, label: str, low: int, high: int) -> int:
        """Return what ``source`` answers."""
        value = self.source.integer(label, low, high)
        self.chosen.append(Chosen(label, low, high, value))
        return value


class ReplayChoices(Choices):
    """Gives the recorded answers again, and says where a run no longer fits them."""

    __slots__ = ("_position", "_recorded")

    def __init__(self, recorded: Iterable[Chosen]) -> None:
        self._recorded = tuple(recorded)
        self._position = 0

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the recorded answer; raises ``Diverged`` for another label or range."""
        asked = f"{label}[{low}..{high}]"
        if self._position == len(self._recorded):
            raise Diverged(self._position, asked, "nothing more")
        then = self._recorded[self._position]
        if (then.label, then.low, then.high) != (label, low, high):
            raise Diverged(self._position, asked, f"{then.label}[{then.low}..{then.high}]")
        self._position += 1
        return then.value

    def finish(self) -> None:
        """Raise ``Diverged`` unless every recorded answer was asked for."""
        if self._position < len(self._recorded):
            then = self._recorded[self._position]
            raise Diverged(self._position, "nothing more", f"{then.label}[{then.low}..{then.high}]")
