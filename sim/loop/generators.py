"""The asynchronous generators of a lifetime: closed by a task when dropped, as asyncio does."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any, TypeAlias

from sim.loop.abandonment import abandon_generator

Generator: TypeAlias = AsyncGenerator[Any, Any]


class LivingGenerators:
    """Those that ``loop`` has started and that still exist; two methods are Python's hooks."""

    __slots__ = ("_living", "_loop", "_started")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # None after the end, when the two must not keep each other.
        self._loop: asyncio.AbstractEventLoop | None = loop
        self._living: dict[int, weakref.ref[Generator]] = {}
        self._started = 0

    def started(self, generator: Generator) -> None:
        """Take note of one that begins."""
        self._started = number = self._started + 1
        living = self._living
        living[number] = weakref.ref(generator, lambda _: living.pop(number, None))

    def dropped(self, generator: Generator) -> None:
        """Close one that nobody holds any more, in a task of its own."""
        if self._loop is None:
            abandon_generator(generator)
        else:
            self._loop.create_task(_closed(generator))

    def living(self) -> list[Generator]:
        """Return them in the order in which they were started."""
        return [found for known in list(self._living.values()) if (found := known()) is not None]

    def end(self) -> list[Generator]:
        """Return them for the last time: whatever is dropped from now on is closed at once."""
        self._loop = None
        living = self.living()
        self._living.clear()
        return living


async def _closed(generator: Generator) -> None:
    await generator.aclose()
