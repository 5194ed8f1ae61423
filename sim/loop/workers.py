"""Calls that block, in a world that has no threads: each is one step of the schedule.

A call that was handed over runs, whole and on its own, at some later step, whatever became
of the caller; so it can come before or after a call that another task handed over. A caller
that is cancelled hears of it after the call. Left out: two calls never run at once, and a
call whose caller was cancelled before it began is never dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """One call that was handed over, and the future of its result.

    ``has_ended`` is set by a caller that was cancelled and waits for the end.
    """

    __slots__ = ("_call", "_result", "ended", "has_ended")

    def __init__(self, call: Callable[[], T], result: asyncio.Future[T]) -> None:
        self._call = call
        self._result = result
        self.ended = False
        self.has_ended: asyncio.Future[None] | None = None

    def __call__(self) -> None:
        """Run the call; what ends a lifetime goes straight through to the event loop."""
        result = self._result
        try:
            value = self._call()
        except BaseException as failure:
            if not isinstance(failure, Exception):
                raise
            if not result.cancelled():
                result.set_exception(failure)
        else:
            if not result.cancelled():
                result.set_result(value)
        self.ended = True
        if self.has_ended is not None and not self.has_ended.done():
            self.has_ended.set_result(None)


class SimulatedWorkers:
    """The workers of the event loop that is running; implements ``system.ports.Workers``."""

    __slots__ = ()

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call()`` returns, or raise what it raises, at a later step."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        job = Job(call, result)
        loop.call_soon(job)
        try:
            return await result
        except asyncio.CancelledError:
            while not job.ended:
                job.has_ended = loop.create_future()
                with suppress(asyncio.CancelledError):
                    await job.has_ended
            raise
