"""Jobs on all cores: they go to worker processes, and results come back as they are ready.

The processes are spawned, not forked: a fork would copy threads in the middle of their work.
A process ends with its parent, however the parent ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from typing import Final, TypeVar

from sim.errors import HarnessError

J = TypeVar("J")
R = TypeVar("R")

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


def work(function: Callable[[J], R], jobs: Iterable[J], processes: int) -> Generator[R, None, None]:
    """Yield ``function(job)`` for every job, in the order in which they are ready.

    Jobs are taken from ``jobs`` when a process is free. An exception of a job is raised here,
    after the results that are ready, and ``WorkerDied`` if a process ended before its job;
    then, and when the generator is closed early, the processes are terminated at once.
    """
    assert processes > 0
    before = {child.pid for child in active_children()}
    executor = ProcessPoolExecutor(processes, get_context("spawn"), _start_worker)
    try:
        try:
            yield from _results(executor, function, iter(jobs), processes * (1 + _WAITING))
        except BrokenProcessPool:
            raise WorkerDied("a worker process ended before its job was done") from None
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in active_children():
            if child.pid not in before:
                child.terminate()
        raise
    executor.shutdown()


def _results(
    executor: ProcessPoolExecutor, function: Callable[[J], R], jobs: Iterator[J], ahead: int
) -> Iterator[R]:
    running: set[Future[R]] = {_submitted(executor, function, job) for job in islice(jobs, ahead)}
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


def _start_worker() -> None:
    # The parent ends its workers by SIGTERM, also if it ignores that signal itself.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ctrl-C reaches all processes of the terminal; only the parent reports it. If it ignores
    # Ctrl-C, so must its workers.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
