"""Choices that Hypothesis makes.

They are drawn from ``ConjectureData`` directly: a strategy per integer would cost ten times
as much. That is a private door, which the pinned version keeps open
(``tests/unit/machines/test_hypothesis_driver.py``).
"""

from __future__ import annotations

from typing import Final

from hypothesis.internal.conjecture.data import ConjectureData

from sim.choices import Choices, PlainChoices

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
