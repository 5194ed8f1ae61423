"""The ticker of an exploration: asks several times a second whether its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from powercut.explorer.verdicts import Exploration
from powercut.place import Place

Tick: TypeAlias = Callable[[Exploration, int], bool]
"""Called with an exploration under way and the operation that it has reached; False stops it."""

_TICK_S: Final = 0.1


class Stopped(BaseException):
    """The time of an exploration is over.

    A ``BaseException``, because a check may be under way, which may catch every other. ``place`` is
    the line of that check, None if none ran in this process.
    """

    def __init__(self, place: Place | None = None) -> None:
        super().__init__()
        self.place = place


class Ticker:
    """Calls ``tick`` for the exploration ``found``, the first time at once.

    ``operation`` is the one that the exploration has reached.
    """

    def __init__(self, tick: Tick, found: Exploration) -> None:
        self.operation = 0
        self._tick = tick
        self._found = found
        self._next = 0.0

    def __call__(self) -> None:
        """Raise ``Stopped`` if the time is over; this is cheap."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _TICK_S
        if not self._tick(self._found, self.operation):
            self._found.stopped = True
            raise Stopped
