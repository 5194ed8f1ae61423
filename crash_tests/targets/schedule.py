"""The schedule of one step of a machine whose target runs tasks: one number says all of it."""

from __future__ import annotations

from typing import Final

from sim.choices import Choices, PlainChoices, SeededChoices

_SCHEDULES: Final = 255


def schedule(choices: Choices) -> Choices:
    """Choose who runs next: first come first served, or one of a few hundred other orders."""
    seed = choices.integer("schedule", 0, _SCHEDULES)
    return SeededChoices(seed) if seed else PlainChoices()
