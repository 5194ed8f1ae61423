"""Work in forked processes, whose results are returned as soon as they are complete."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Final, NamedTuple, NoReturn, TypeVar

from powercut.fuse.orphans import end_with_parent
from sim.errors import HarnessError, described

Result = TypeVar("Result")

_TICK_S: Final = 0.1
_INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KILLED: Final = (
    "a process of powercut was killed before its work was done, most often by the system for want "
    "of memory, so nothing is proven"
)


class _Failure(NamedTuple):
    """The text of the exception that ended a worker."""

    text: str


class _Done(NamedTuple):
    """The last object that a worker sends."""


class _Worker(NamedTuple):
    process: int
    results: Connection


def in_processes(
    count: int, work: Callable[[int], Iterable[Result]], tick: Callable[[], None]
) -> Generator[Result, None, None]:
    """Yield the results of ``work(0)`` to ``work(count - 1)``, in the order of completion.

    Each call runs in a process of its own, which sees everything that this process has made.
    Results are pickled. ``tick`` is called several times a second. All processes have ended when
    the iteration ends, also if ``tick`` raises an exception or the generator is closed. An
    exception of a worker becomes a ``HarnessError``, and so does its death.
    """
    workers: list[_Worker] = []
    # An interrupt while they begin comes when all of them are known, and will be ended.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        try:
            workers.extend(_start(work, number, before) for number in range(count))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        waiting = {worker.results for worker in workers}
        while waiting:
            for ready in wait(waiting, _TICK_S):
                assert isinstance(ready, Connection)
                try:
                    result = ready.recv()
                except (EOFError, OSError):
                    tick()  # an interrupt may have ended all processes
                    raise HarnessError(_KILLED) from None
                if isinstance(result, _Done):
                    waiting.discard(ready)
                    continue
                if isinstance(result, _Failure):
                    raise HarnessError(result.text)
                yield result
            tick()
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker.process, signal.SIGTERM)
            os.waitpid(worker.process, 0)
            worker.results.close()


def _start(work: Callable[[int], Iterable[Result]], number: int, mask: Iterable[int]) -> _Worker:
    """Start a worker; interrupts are blocked, so that no handler of this process runs in it."""
    ours, theirs = Pipe(duplex=False)
    process = os.fork()
    if not process:
        ours.close()
        _work(work, number, theirs, mask)
    theirs.close()
    return _Worker(process, ours)


def _work(
    work: Callable[[int], Iterable[Result]],
    number: int,
    results: Connection,
    mask: Iterable[int],
) -> NoReturn:
    """Send the results, and end this process, which is the worker."""
    try:
        try:
            _send_all(work, number, results, mask)
        finally:
            os._exit(0)
    finally:
        # SIGTERM came after the end of the work, and ``_end`` has raised before the exit above.
        os._exit(0)


def _send_all(
    work: Callable[[int], Iterable[Result]],
    number: int,
    results: Connection,
    mask: Iterable[int],
) -> None:
    """Send the results, or the exception that has ended the work."""
    # A terminal sends its signals to all processes, and the first one decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, _pass_over)
    signal.signal(signal.SIGTERM, _end)
    end_with_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        for result in work(number):
            results.send(result)
        results.send(_Done())
    except HarnessError as mistake:
        results.send(_Failure(str(mistake)))
    except Exception as error:  # noqa: BLE001 - the other process raises it
        results.send(_Failure(described(error)))


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. A program that this worker starts would inherit an ignored signal."""


def _end(_number: int, _frame: FrameType | None) -> None:
    """End the processes that this worker has started, and then the worker."""
    signal.signal(signal.SIGTERM, _pass_over)
    raise SystemExit
