"""A call, such as a barrier, that one coroutine makes for all that wait for its effect."""

from __future__ import annotations

from asyncio import Event
from collections.abc import Awaitable, Callable


class SharedCall:
    """Makes one call at a time, in one of the coroutines that need it.

    The others wait for its end, and are all woken in one round of the event loop. A lock would
    wake them one after the other.
    """

    def __init__(self) -> None:
        self._ended: Event | None = None

    async def until(self, is_done: Callable[[], bool], call: Callable[[], Awaitable[None]]) -> None:
        """Make the ``call``, or wait for the end of one, until ``is_done()``.

        Raises what the call raises, if this coroutine has made it.
        """
        while not is_done():
            if self._ended is not None:
                await self._ended.wait()
            else:
                await self._make(call)

    async def end(self) -> None:
        """Wait for the end of a call that is being made; there must be one."""
        assert self._ended is not None
        await self._ended.wait()

    async def _make(self, call: Callable[[], Awaitable[None]]) -> None:
        ended = self._ended = Event()
        try:
            await call()
        finally:
            self._ended = None
            ended.set()
