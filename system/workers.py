"""Threads that call the disk, so that the event loop does not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EAGAIN
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, main_thread
from typing import Any, Final, TypeAlias, TypeVar, cast
from weakref import finalize

T = TypeVar("T")
_Jobs: TypeAlias = "SimpleQueue[Callable[[], None] | None]"

THREADS: Final = 16
"""Concurrent barriers at most; more of them gain nothing on one disk."""


class _Job:
    """A call for a thread; ``has_ended`` is set when its caller on ``loop`` may go on.

    ``do`` is called in the thread, ``begin`` anywhere, the other methods on the loop.
    """

    __slots__ = ("_begun", "_call", "_failure", "_result", "_woken", "has_ended", "loop")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.has_ended = False
        self._begun = Lock()
        self._call = call
        self._result: Any = None
        self._failure: BaseException | None = None
        self._woken: asyncio.Future[None]

    def begin(self) -> bool:
        """Return whether this is the first call: a thread does the job, or its caller drops it."""
        return self._begun.acquire(blocking=False)

    def do(self) -> None:
        """Do the call, and keep its result or exception."""
        try:
            self._result = self._call()
        except BaseException as failure:  # noqa: BLE001 - the caller raises it
            self._failure = failure

    def wait(self) -> asyncio.Future[None]:
        """Return a future that ``end`` ends; the job goes on if its caller is cancelled."""
        self._woken = self.loop.create_future()
        return self._woken

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

    One wake-up of an event loop ends all jobs that were done meanwhile.
    """

    def __init__(self) -> None:
        self._jobs: _Jobs = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = Lock()
        # The number of jobs that wait for a thread or are under way.
        self._unended = 0
        self._done: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        finalize(self, _end_threads, self._jobs, self._threads)

    async def run(self, call: Callable[[], T]) -> T:
        job = _Job(call)
        with self._lock:
            if len(self._threads) < min(self._unended + 1, THREADS):
                self._start_thread()
            self._unended += 1
        self._jobs.put(partial(self._do, job))
        try:
            await job.wait()
        except asyncio.CancelledError:
            while not (job.has_ended or job.begin()):
                with suppress(asyncio.CancelledError):
                    await job.wait()
            raise
        return cast("T", job.result())

    def _start_thread(self) -> None:
        """Start one more thread; raises ``OSError`` if the system refuses the first one."""
        # A daemon, because a thread that waits for jobs must not keep the interpreter from exiting.
        thread = Thread(target=_do_all, args=(self._jobs,), name="powercut-disk", daemon=True)
        try:
            thread.start()
        except RuntimeError as refused:
            if not self._threads:
                raise OSError(EAGAIN, str(refused)) from None
        else:
            self._threads.append(thread)

    def _do(self, job: _Job) -> None:
        """Do a job in a thread, unless its caller has dropped it."""
        is_taken = job.begin()
        if is_taken:
            job.do()
        with self._lock:
            self._unended -= 1
            is_first = is_taken and job.loop not in self._done
            if is_taken:
                self._done.setdefault(job.loop, []).append(job)
        if is_first:
            # On a loop that was closed no caller waits.
            with suppress(RuntimeError):
                job.loop.call_soon_threadsafe(self._end_done, job.loop)

    def _end_done(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            done = self._done.pop(loop)
        for job in done:
            job.end()


def _do_all(jobs: _Jobs) -> None:
    """Do jobs in a thread; while it waits for the next one, it refers to no workers."""
    while (job := jobs.get()) is not None:
        job()
        del job


def _end_threads(jobs: _Jobs, threads: Sequence[Thread]) -> None:
    """Let the threads do the jobs that wait, and end."""
    for _ in threads:
        jobs.put(None)
    if not main_thread().is_alive():
        # The exit of the interpreter would stop them in the middle of a job.
        for thread in threads:
            thread.join()
