"""Choices for rules of a ``RuleBasedStateMachine`` that a user writes."""

from __future__ import annotations

from hypothesis.strategies import DataObject, integers

from sim.choices import Choices


class HypothesisChoices(Choices):
    """Choices that Hypothesis makes and shrinks; ``data`` is a draw from ``st.data()``."""

    __slots__ = ("_data",)

    def __init__(self, data: DataObject) -> None:
        self._data = data

    def integer(self, label: str, low: int, high: int) -> int:
        """Draw a number from ``low`` to ``high``."""
        return self._data.draw(integers(low, high), label)
