"""Blocking calls in a world without threads: each is one step of the schedule.

A call that was handed over runs at some later step, uninterrupted, even if its caller is
cancelled; it may run before or after the call that another task handed over. A cancelled
caller is resumed after the call. Left out: two calls never run at the same time, and a call
whose caller was cancelled before it began is never dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """One call that was handed over, and the future of its result.

    ``on_end`` is set by a cancelled caller that waits for the end of the call.
    """

    __slots__ = ("_call", "_result", "ended", "on_end")

    def __init__(self, call: Callable[[], T], result: asyncio.Future[T]) -> None:
        self._call = call
        self._result = result
        self.ended = False
        self.on_end: asyncio.Future[None] | None = None

    def __call__(self) -> None:
        """Run the call; a ``BaseException`` that ends the lifetime passes to the event loop."""
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
        if self.on_end is not None and not self.on_end.done():
            self.on_end.set_result(None)


class SimulatedWorkers:
    """Runs blocking calls on the event loop that is running."""

    __slots__ = ()

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call()`` at a later step and return its result; its exceptions pass through.

        If the caller is cancelled, ``CancelledError`` is raised after the call has ended.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        job = Job(call, result)
        loop.call_soon(job)
        try:
            return await result
        except asyncio.CancelledError:
            while not job.ended:
                job.on_end = loop.create_future()
                with suppress(asyncio.CancelledError):
                    await job.on_end
            raise
