"""The timers of an event loop: by their moment, and among equals in the order they were set."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from sim.loop.handles import MomentHandle

_CANCELLED_KEPT: Final = 64


class Timers:
    """``heap`` holds moment (virtual nanoseconds), number and handle; its first is the earliest."""

    __slots__ = ("_cancelled", "_set", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, MomentHandle]] = []
        self._set = 0
        self._cancelled = 0

    def set(self, handle: MomentHandle) -> None:
        """Keep a timer."""
        self._set += 1
        handle.timers = self
        heappush(self.heap, (handle.moment_ns, self._set, handle))

    def due(self, now_ns: int) -> list[MomentHandle]:
        """Take out what is due, in its order."""
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
        """Forget all."""
        self.heap.clear()

    def timer_cancelled(self) -> None:
        """Count a timer that was cancelled; when they are more than half, throw them away."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT and self._cancelled * 2 > len(self.heap):
            self.heap[:] = [entry for entry in self.heap if entry[2].callback is not None]
            heapify(self.heap)
            self._cancelled = 0

    def _take(self) -> MomentHandle:
        handle = heappop(self.heap)[2]
        handle.timers = None
        if handle.callback is None:
            self._cancelled -= 1
        return handle
