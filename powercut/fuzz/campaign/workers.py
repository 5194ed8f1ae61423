"""Jobs on all cores: they go to worker processes, and results come back as they are ready.

The processes are spawned, not forked: a fork would copy threads in the middle of their work.
A process ends with its parent, however the parent ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Final, TypeVar

from powercut.breakpoints import refuse_breakpoint
from sim.errors import HarnessError
from sim.loop.sandbox import SANDBOX

J = TypeVar("J")
R = TypeVar("R")

_SECONDS_TO_END: Final = 2.0

_TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a worker that this process has ended."""

_WAITING: Final = 2
"""Jobs that wait for each process, so that none is idle."""


class WorkerDied(HarnessError):
    """A worker process ended before its job was done.

    Cause: it was killed, most often by the system for want of memory, or an extension module
    crashed. Cure: look into the log of the system; use fewer processes.
    """


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _nothing(_frame: FrameType | None) -> str:
    return ""


def work(
    function: Callable[[J], R],
    jobs: Iterable[J],
    processes: int,
    describe: Callable[[FrameType | None], str] = _nothing,
) -> Generator[R, None, None]:
    """Yield ``function(job)`` for every job, in the order in which they are ready.

    Jobs are taken from ``jobs`` when a process is free. An exception of a job is raised here,
    after the results that are ready, and ``WorkerDied`` if a process ended before its job;
    then, and when the generator is closed early, the processes are terminated at once. The
    exception has a note with the text of ``describe`` for each of them, which is called with the
    frame that it executes, unless the text is empty.
    """
    assert processes > 0
    before = {child.pid for child in active_children()}
    spawn = get_context("spawn")
    texts, texts_of_workers = spawn.Pipe(duplex=False)
    arguments = (describe, texts_of_workers)
    executor = ProcessPoolExecutor(processes, spawn, _start_worker, arguments)
    waiting, workers = iter(jobs), list[BaseProcess]()
    try:
        ahead = islice(waiting, processes * (1 + _WAITING))
        running = {_submitted(executor, function, job) for job in ahead}
        workers += _workers(before)
        yield from _results(executor, function, waiting, running)
    except BaseException as end:
        _terminate(_workers(before))
        # The thread of the executor ends now. Without a wait, the end of this process may still
        # use the pipe that the thread closes.
        executor.shutdown(cancel_futures=True)
        raised = _died(workers) if isinstance(end, BrokenProcessPool) else end
        while texts.poll():
            raised.add_note(texts.recv())
        if raised is end:
            raise
        raise raised from None
    executor.shutdown()


def _workers(before: Collection[int | None]) -> list[BaseProcess]:
    """Return the child processes but those with the process ids ``before``."""
    return [child for child in active_children() if child.pid not in before]


def _died(workers: Sequence[BaseProcess]) -> WorkerDied:
    """Return the error for a worker that has ended, with the reason if it is known."""
    ours = {None, -signal.SIGTERM, _TERMINATED}
    codes = [worker.exitcode or 0 for worker in workers if worker.exitcode not in ours]
    end = ""
    if codes:
        end = f" ({f'exit code {codes[0]}' if codes[0] >= 0 else signal.Signals(-codes[0]).name})"
    return WorkerDied(
        f"a worker process ended before its job was done{end}; it was killed, perhaps for want of "
        "memory, or an extension module crashed: see the log of the system"
    )


def _terminate(workers: Sequence[BaseProcess]) -> None:
    """End the workers; one that does not execute Python is killed after some time."""
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + _SECONDS_TO_END
    try:
        for worker in workers:
            worker.join(max(0.0, end - time.monotonic()))
    finally:
        for worker in workers:
            worker.kill()


def _results(
    executor: ProcessPoolExecutor,
    function: Callable[[J], R],
    jobs: Iterator[J],
    running: set[Future[R]],
) -> Iterator[R]:
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=_has_failed):
            yield future.result()
        running |= {_submitted(executor, function, job) for job in islice(jobs, len(done))}


def _submitted(executor: ProcessPoolExecutor, function: Callable[[J], R], job: J) -> Future[R]:
    try:
        return executor.submit(function, job)
    except OSError:
        # The executor closes its pipe when a process ends, perhaps in the middle of this call.
        raise BrokenProcessPool from None


def _has_failed(done: Future[R]) -> bool:
    return done.exception() is not None


def _start_worker(describe: Callable[[FrameType | None], str], texts: Connection) -> None:
    def end(_number: int, frame: FrameType | None) -> None:
        with SANDBOX.suspended():
            # A pool that finds an ended process terminates the others too.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            try:
                if text := describe(frame):
                    texts.send(text)
            finally:
                os._exit(_TERMINATED)

    # The parent ends its workers by SIGTERM, also if it ignores that signal itself. Ctrl-C and
    # the end of a terminal reach all of its processes; only the parent reports them.
    signal.signal(signal.SIGTERM, end)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.breakpointhook = refuse_breakpoint
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
