"""Event loops for the tests, and the order in which tasks ran."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from sim.choices import Choices, PlainChoices
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop

T = TypeVar("T")

SECOND_NS = 1_000_000_000


def new_loop(choices: Choices | None = None) -> SimulatedLoop:
    return SimulatedLoop(SimulatedClock(), choices or PlainChoices())


def run(coroutine: Coroutine[Any, Any, T], choices: Choices | None = None) -> T:
    """Run to the end on a new loop; a failure that reached nobody is raised."""
    loop = new_loop(choices)
    result = loop.run_until_complete(coroutine)
    loop.raise_unhandled()
    loop.close()
    return result
