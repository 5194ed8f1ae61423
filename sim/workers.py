"""Calls that block, in a world that has no threads: each is one step of the schedule.

A call that was handed over runs, whole and on its own, at some later step, whatever became
of the caller; so it can come before or after a call that another task handed over, and
after the clean-up of a caller that was cancelled. Left out: two calls never run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """One call that was handed over, and the future of its result."""

    __slots__ = ("_call", "_result")

    def __init__(self, call: Callable[[], T], result: asyncio.Future[T]) -> None:
        self._call = call
        self._result = result

    def __call__(self) -> None:
        """Run the call; what ends a lifetime goes straight through to the event loop."""
        with self:
            value = self._call()
            if not self._result.cancelled():
                self._result.set_result(value)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(failure, Exception):
            return False
        if not self._result.cancelled():
            self._result.set_exception(failure)
        return True


class SimulatedWorkers:
    """The workers of the event loop that is running; implements ``system.ports.Workers``."""

    __slots__ = ()

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call()`` returns, or raise what it raises, at a later step.

        A call that was handed over ends even when the caller is cancelled meanwhile.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        loop.call_soon(Job(call, result))
        return await result
