"""Event loops and worlds for the tests."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from sim.choices import Choices, PlainChoices
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from sim.world import Boot, World

T = TypeVar("T")

SECOND_NS = 1_000_000_000


def new_world(schedule: Choices | None = None) -> World[Boot]:
    """Return a world whose host is the ``Boot`` itself."""
    world = World(lambda boot: boot, PlainChoices())
    world.schedule = schedule or PlainChoices()
    return world


def new_loop(choices: Choices | None = None) -> SimulatedLoop:
    return SimulatedLoop(SimulatedClock(), choices or PlainChoices())


def run(coroutine: Coroutine[Any, Any, T], choices: Choices | None = None) -> T:
    """Run the coroutine on a new loop; raise any failure that was never retrieved."""
    loop = new_loop(choices)
    result = loop.run_until_complete(coroutine)
    loop.raise_unhandled()
    loop.close()
    return result
