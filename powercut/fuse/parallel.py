"""Work in forked processes, whose results are returned as soon as they are complete."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import NamedTuple, TypeVar

from sim.errors import HarnessError

Result = TypeVar("Result")


class _Failure(NamedTuple):
    """The text of the exception that ended a worker."""

    text: str


class _Worker(NamedTuple):
    process: int
    results: Connection


def in_processes(count: int, work: Callable[[int], Iterable[Result]]) -> Iterator[Result]:
    """Yield the results of ``work(0)`` to ``work(count - 1)``, in the order of completion.

    Each call runs in a process of its own, which sees everything that this process has made.
    Results are pickled. All processes have ended when the iteration ends, however it ends. An
    exception of a worker becomes a ``HarnessError``.
    """
    workers = [_start(work, number) for number in range(count)]
    waiting = {worker.results for worker in workers}
    try:
        while waiting:
            for ready in wait(waiting):
                assert isinstance(ready, Connection)
                try:
                    result = ready.recv()
                except EOFError:
                    waiting.discard(ready)
                    continue
                if isinstance(result, _Failure):
                    raise HarnessError(result.text)
                yield result
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker.process, signal.SIGTERM)
            os.waitpid(worker.process, 0)
            worker.results.close()


def _start(work: Callable[[int], Iterable[Result]], number: int) -> _Worker:
    ours, theirs = Pipe(duplex=False)
    process = os.fork()
    if process:
        theirs.close()
        return _Worker(process, ours)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ours.close()
        try:
            for result in work(number):
                theirs.send(result)
        except Exception as error:  # noqa: BLE001 - the other process raises it
            theirs.send(_Failure(f"{type(error).__name__}: {error}"))
    finally:
        os._exit(0)
