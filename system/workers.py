"""Threads that call the disk, so that the event loop does not wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

THREADS: Final = 16
"""Concurrent barriers at most; more of them gain nothing on one disk."""


class _Job:
    """A call for a thread; ``has_ended`` is set when its caller on ``loop`` may go on.

    ``do`` is called in the thread, the other methods on the loop.
    """

    __slots__ = ("_call", "_failure", "_result", "_woken", "has_ended", "loop")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.has_ended = False
        self._call = call
        self._result: Any = None
        self._failure: BaseException | None = None
        self._woken: asyncio.Future[None]

    def do(self) -> None:
        """Do the call, and keep its result or exception."""
        try:
            self._result = self._call()
        except BaseException as failure:  # noqa: BLE001 - the caller raises it
            self._failure = failure

    async def wait(self) -> None:
        """Wait for ``end``; the job goes on if its caller is cancelled."""
        self._woken = self.loop.create_future()
        await self._woken

    def end(self) -> None:
        """Let the caller go on."""
        self.has_ended = True
        if not self._woken.done():
            self._woken.set_result(None)

    def result(self) -> Any:
        """Return the result of the call, or raise its exception."""
        assert self.has_ended
        if self._failure is not None:
            raise self._failure
        return self._result


class RealWorkers:
    """A pool of threads, started on demand.

    A thread does jobs until none waits, and one wake-up of an event loop ends all jobs that were
    done meanwhile. Passing each one to the pool and back by itself takes several times as long.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "powercut-disk")
        self._lock = Lock()
        self._busy = 0
        self._waiting: deque[_Job] = deque()
        self._done: dict[asyncio.AbstractEventLoop, list[_Job]] = {}

    async def run(self, call: Callable[[], T]) -> T:
        job = _Job(call)
        with self._lock:
            self._waiting.append(job)
            is_needed = self._busy < THREADS
            self._busy += is_needed
        if is_needed:
            self._threads.submit(self._do_waiting)
        try:
            await job.wait()
        except asyncio.CancelledError:
            while not (job.has_ended or self._is_withdrawn(job)):
                with suppress(asyncio.CancelledError):
                    await job.wait()
            raise
        return cast("T", job.result())

    def _is_withdrawn(self, job: _Job) -> bool:
        """Take a job back if no thread has begun it; return whether that was so."""
        with self._lock:
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
        return is_waiting

    def _do_waiting(self) -> None:
        """Do jobs in a thread until none waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy -= 1
                    return
                job = self._waiting.popleft()
            job.do()
            with self._lock:
                done = self._done.setdefault(job.loop, [])
                done.append(job)
                is_first = len(done) == 1
            if is_first:
                # On a loop that was closed no caller waits.
                with suppress(RuntimeError):
                    job.loop.call_soon_threadsafe(self._end_done, job.loop)

    def _end_done(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            done = self._done.pop(loop)
        for job in done:
            job.end()
