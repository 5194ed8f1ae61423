"""Calls in forked processes: each takes its share of the arguments, and sends result by result."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from sim.errors import HarnessError

A = TypeVar("A")
R = TypeVar("R")

_TICK_S: Final = 0.1


class _Raised(NamedTuple):
    """A mistake that a call raised in its process."""

    text: str


class _Unsendable(NamedTuple):
    """A result that cannot be sent to another process."""


class _Fork(NamedTuple):
    """A process, and the places of those of its arguments whose results have not come yet."""

    process: int
    pipe: Connection
    places: deque[int]

    @property
    def next_place(self) -> int:
        """The place of the next result; behind all others when every result has come."""
        return self.places[0] if self.places else sys.maxsize


def _never() -> None:
    """Let the calls run to their ends."""


def in_forks(
    function: Callable[[A], R],
    arguments: Sequence[A],
    processes: int,
    tick: Callable[[], None] = _never,
) -> Generator[tuple[int, R]]:
    """Yield the place of each argument with ``function(argument)``, computed in ``processes``.

    They come in the order of their completion. Only the result of a call comes back, not its
    changes of memory. A result that cannot be pickled is computed here once more. ``tick`` is
    called several times a second, with one process between two calls; an exception that it
    raises ends the processes. Raises the first ``HarnessError`` of a call, and one if a process
    ends by itself.
    """
    if processes == 1 or len(arguments) <= 1:
        for place, argument in enumerate(arguments):
            tick()
            yield place, function(argument)
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):
            stream.flush()
    processes = min(processes, len(arguments))
    forks: list[_Fork] = []
    try:
        shares = (range(number, len(arguments), processes) for number in range(processes))
        forks.extend(_start(function, arguments, places) for places in shares)
        for place, found in _results(forks, tick):
            yield place, function(arguments[place]) if isinstance(found, _Unsendable) else found
    finally:
        for fork in forks:
            fork.pipe.close()
            # The check of a fork may run in processes of its own, which are in its group.
            os.killpg(fork.process, signal.SIGKILL)
            os.waitpid(fork.process, 0)


def _results(forks: Sequence[_Fork], tick: Callable[[], None]) -> Iterator[tuple[int, Any]]:
    """Yield the results as they come; raise the first ``HarnessError`` when it is certain."""
    first, mistake = sys.maxsize, ""
    while waiting := {fork.pipe: fork for fork in forks if fork.next_place < first}:
        for ready in wait(list(waiting), _TICK_S):
            assert isinstance(ready, Connection)
            fork = waiting[ready]
            found = _received(fork)
            place = fork.places.popleft()
            if not isinstance(found, _Raised):
                yield place, found
            elif place < first:
                first, mistake = place, found.text
        tick()
    if mistake:
        raise HarnessError(mistake)


def _start(function: Callable[[A], R], arguments: Sequence[A], places: Sequence[int]) -> _Fork:
    reading, writing = Pipe(duplex=False)
    with warnings.catch_warnings():
        # The other threads of this process do not exist in the fork, and it uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        _work(function, [arguments[place] for place in places], writing)
    writing.close()
    with suppress(OSError):  # the fork has done it
        os.setpgid(process, process)
    return _Fork(process, reading, deque(places))


def _work(function: Callable[[A], R], share: Sequence[A], pipe: Connection) -> NoReturn:
    """Send the results of a share, and end this process, which is the fork."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            # The first process decides what a signal means.
            signal.signal(number, signal.SIG_IGN)
        for argument in share:
            pipe.send_bytes(_sendable(function, argument))
    finally:
        os._exit(0)


def _sendable(function: Callable[[A], R], argument: A) -> bytes:
    found: object
    try:
        found = function(argument)
    except HarnessError as mistake:
        found = _Raised(str(mistake))
    try:
        sent = pickle.dumps(found)
        pickle.loads(sent)
    except Exception:  # its own methods may raise anything; it is computed once more
        return pickle.dumps(_Unsendable())
    return sent


def _received(fork: _Fork) -> Any:
    """Return the next result of a fork."""
    try:
        return pickle.loads(fork.pipe.recv_bytes())
    except EOFError:
        raise HarnessError(
            "a process that ran the check ended by itself; run with -n 1 to see how"
        ) from None
