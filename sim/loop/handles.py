"""The calls that the simulated event loop will make, at once or at a later time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Any, Final

from sim.loop.workers import Job

_CANCELLED_KEPT: Final = 64


class ReadyHandle(asyncio.Handle):
    """A call that is ready to run; ``callback`` is None once it was cancelled.

    The slots of the base class stay empty: filling them costs as much as the call.
    """

    __slots__ = ("args", "callback", "context")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context):
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        """Cancel the call."""
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self.callback is None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.callback!r}>"


class TimedHandle(asyncio.TimerHandle):
    """A call that becomes ready at ``moment_ns`` of virtual, monotonic time.

    ``timers`` is the heap that holds it, None before it is set and after it was taken out.
    """

    __slots__ = ("args", "callback", "context", "moment_ns", "timers")

    def __init__(
        self,
        moment_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
    ):
        self.moment_ns = moment_ns
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        self.timers: Timers | None = None

    def cancel(self) -> None:
        """Cancel the call."""
        if self.callback is not None:
            self.callback = None
            self.args = ()
            if self.timers is not None:
                self.timers.count_cancelled()

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self.callback is None

    def when(self) -> float:
        """Return the moment in seconds of ``loop.time()``."""
        return self.moment_ns / 1e9

    def __repr__(self) -> str:
        return f"<{type(self).__name__} moment_ns={self.moment_ns} {self.callback!r}>"

    def __hash__(self) -> int:
        return self.moment_ns

    def __eq__(self, other: object) -> bool:
        return self is other


class Timers:
    """The timers of an event loop, ordered by moment and then by the order of ``set``.

    ``heap`` has moment, serial number and handle of each; its first entry is the earliest.
    """

    __slots__ = ("_cancelled", "_set", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, TimedHandle]] = []
        self._set = 0
        self._cancelled = 0

    def set(self, handle: TimedHandle) -> None:
        """Add a timer."""
        self._set += 1
        handle.timers = self
        heappush(self.heap, (handle.moment_ns, self._set, handle))

    def due(self, now_ns: int) -> list[TimedHandle]:
        """Remove and return the timers that are due, in order."""
        heap, due = self.heap, []
        while heap and heap[0][0] <= now_ns:
            handle = self._take()
            if handle.callback is not None:
                due.append(handle)
        return due

    def earliest_ns(self) -> int | None:
        """Return the moment of the earliest timer that was not cancelled."""
        heap = self.heap
        while heap and heap[0][2].callback is None:
            self._take()
        return heap[0][0] if heap else None

    def clear(self) -> None:
        """Remove all timers."""
        self.heap.clear()

    def count_cancelled(self) -> None:
        """Count a cancelled timer; remove them all once they are more than half of the heap."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT and self._cancelled * 2 > len(self.heap):
            self.heap[:] = [entry for entry in self.heap if entry[2].callback is not None]
            heapify(self.heap)
            self._cancelled = 0

    def _take(self) -> TimedHandle:
        handle = heappop(self.heap)[2]
        handle.timers = None
        if handle.callback is None:
            self._cancelled -= 1
            assert self._cancelled >= 0
        return handle


def may_overtake(handle: ReadyHandle | TimedHandle) -> bool:
    """Return whether a call may run before earlier ones: steps of tasks, jobs, timers."""
    callback = handle.callback
    return isinstance(handle, TimedHandle) or isinstance(
        callback if isinstance(callback, Job) else getattr(callback, "__self__", None),
        (asyncio.Task, Job),
    )


def name_of(callback: Callable[..., object]) -> str:
    """Return the name of the task whose step a callback is, or else of the function."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))
