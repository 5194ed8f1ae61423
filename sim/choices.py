"""The single source of everything that may differ between two runs.

Every decision asks ``Choices`` for a whole number in a range; no code uses a real clock, a
random module or an address. The lowest number is the simplest decision: no fault, nothing
lost, first in line. The simplest run therefore consists of lows, and shrinking a failing
run towards lows removes its complications.

Left out: weights and distributions. A caller that needs them maps a plain number to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from sim.errors import HarnessError

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


class Choices(Protocol):
    """Answers every question of a run; the same answers give the same run."""

    def integer(self, label: str, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included; ``low`` is the simplest."""
        ...

    def pick(self, label: str, options: Sequence[T]) -> T:
        """Return one of ``options``, which must not be empty; the first is the simplest."""
        return options[self.integer(label, 0, len(options) - 1)]


class Chosen(NamedTuple):
    """One question with its answer, as a reproducer stores it."""

    label: str
    low: int
    high: int
    value: int


class Diverged(HarnessError):
    """A replay asked a question that the recorded answers do not fit.

    Cause: the program under test, or the simulated machine, changed since the recording, so
    that the run took another way. Cure: none is needed if the failure was fixed; else record
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
    """Gives the simplest answer to every question."""

    def integer(self, label: str, low: int, high: int) -> int:
        """Return ``low``; ``HarnessError`` if the range is empty."""
        if low > high:
            raise _empty(label, low, high)
        return low


class SeededChoices(Choices):
    """Answers from a SplitMix64 generator (Steele et al., OOPSLA 2014).

    The same seed gives the same answers on every machine and Python version.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def integer(self, label: str, low: int, high: int) -> int:
        """Return a number, evenly distributed; ``HarnessError`` if the range is empty."""
        if low > high:
            raise _empty(label, low, high)
        self._state = state = (self._state + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
        return low + ((state * (high - low + 1)) >> 64)


class RecordingChoices(Choices):
    """Forwards every question to ``source`` and appends the answer to ``chosen``."""

    __slots__ = ("chosen", "source")

    def __init__(self, source: Choices, chosen: list[Chosen] | None = None) -> None:
        self.source = source
        self.chosen: list[Chosen] = [] if chosen is None else chosen

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the answer of ``source``."""
        value = self.source.integer(label, low, high)
        self.chosen.append(Chosen(label, low, high, value))
        return value


class ReplayChoices(Choices):
    """Repeats recorded answers, and reports the first question that does not fit them."""

    __slots__ = ("_position", "_recorded")

    def __init__(self, recorded: Iterable[Chosen]) -> None:
        self._recorded = tuple(recorded)
        self._position = 0

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the recorded answer; ``Diverged`` for another label or range."""
        asked = f"{label}[{low}..{high}]"
        if self._position == len(self._recorded):
            raise Diverged(self._position, asked, "nothing more")
        then = self._recorded[self._position]
        if (then.label, then.low, then.high) != (label, low, high):
            raise Diverged(self._position, asked, f"{then.label}[{then.low}..{then.high}]")
        self._position += 1
        return then.value

    def finish(self) -> None:
        """Raise ``Diverged`` unless every recorded answer was used."""
        if self._position < len(self._recorded):
            then = self._recorded[self._position]
            raise Diverged(self._position, "nothing more", f"{then.label}[{then.low}..{then.high}]")
