"""The single source of everything that may differ between two runs.

Every decision asks ``Choices`` for a whole number in a range; no code uses a real clock, a
random module or an address. The lowest number is the simplest decision: no fault, nothing
lost, first in line. The simplest run therefore consists of lows, and shrinking a failing
run towards lows removes its complications.

Left out: weights and distributions. A caller that needs them maps a plain number to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
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
    """A replay asked a question that was not recorded, or met an action that is impossible.

    Cause: the program under test, or the simulated machine, changed since the recording, so
    that the run took another way. Cure: record the failure again. ``position`` counts the
    recorded answers before the place of the divergence.
    """

    def __init__(self, position: int, asked: str, recorded: str) -> None:
        super().__init__(f"replay diverged at choice {position}: asked={asked} recorded={recorded}")
        self.position = position
        self.asked = asked
        self.recorded = recorded


class NothingToChoose(HarnessError):
    """A question has no answer: its range, or its sequence of options, is empty.

    Cause: a choice among things of which the system has none now. Cure: do not ask then; an
    action that needs one of them is not ``ready``.
    """

    def __init__(self, label: str, low: int, high: int) -> None:
        super().__init__(f"nothing to choose from: {label}[{low}..{high}]")


class PlainChoices(Choices):
    """Gives the simplest answer to every question."""

    def integer(self, label: str, low: int, high: int) -> int:
        """Return ``low``; ``NothingToChoose`` if the range is empty."""
        if low > high:
            raise NothingToChoose(label, low, high)
        return low


class SeededChoices(Choices):
    """Answers from a SplitMix64 generator (Steele et al., OOPSLA 2014).

    The same seed gives the same answers on every machine and Python version.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def integer(self, label: str, low: int, high: int) -> int:
        """Return a number, evenly distributed; ``NothingToChoose`` if the range is empty."""
        if low > high:
            raise NothingToChoose(label, low, high)
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
        low, high = index(low), index(high)
        value = self.source.integer(label, low, high)
        self.chosen.append(Chosen(label, low, high, value))
        return value


class ReplayChoices(Choices):
    """Repeats recorded answers.

    Each question takes the next recorded answer to the same question, which has the same label
    and range. Answers in between are passed over: a program that was fixed may ask less.
    """

    __slots__ = ("_position", "_recorded", "_used")

    def __init__(self, recorded: Iterable[Chosen]) -> None:
        self._recorded = tuple(recorded)
        self._position = 0
        self._used = 0

    @property
    def unused(self) -> int:
        """The number of recorded answers to questions that were not asked."""
        return len(self._recorded) - self._used

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the recorded answer; ``Diverged`` if the question was not recorded."""
        for position in range(self._position, len(self._recorded)):
            then = self._recorded[position]
            if (then.label, then.low, then.high) == (label, low, high):
                self._position = position + 1
                self._used += 1
                return then.value
        following = [f"{then.label}[{then.low}..{then.high}]" for then in self._recorded]
        recorded = ", ".join(following[self._position :]) or "nothing more"
        raise Diverged(self._position, f"{label}[{low}..{high}]", recorded)
