"""Calls in forked processes: each takes its share of the arguments, results come back in order."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from sim.errors import HarnessError

A = TypeVar("A")
R = TypeVar("R")

_CHUNK: Final = 1 << 20


class _Raised(NamedTuple):
    """A mistake that a call raised in its process."""

    text: str


class _Unsendable(NamedTuple):
    """A result that cannot be sent to another process."""


class _Fork(NamedTuple):
    process: int
    pipe: int


def in_forks(function: Callable[[A], R], arguments: Sequence[A], processes: int) -> list[R]:
    """Return ``function(argument)`` for each argument, computed in ``processes`` processes.

    Only the result of a call comes back, not its changes of memory. A result that cannot be
    pickled is computed here once more. Raises the first ``HarnessError`` of a call, and one if
    a process ends by itself.
    """
    if processes == 1 or len(arguments) <= 1:
        return [function(argument) for argument in arguments]
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):
            stream.flush()
    processes = min(processes, len(arguments))
    forks: list[_Fork] = []
    try:
        forks.extend(_start(function, arguments[number::processes]) for number in range(processes))
        shares = [_received(fork) for fork in forks]
    finally:
        for fork in forks:
            os.close(fork.pipe)
            os.kill(fork.process, signal.SIGKILL)
            os.waitpid(fork.process, 0)
    results: list[R] = []
    for index, argument in enumerate(arguments):
        found = shares[index % processes][index // processes]
        if isinstance(found, _Raised):
            raise HarnessError(found.text)
        results.append(function(argument) if isinstance(found, _Unsendable) else found)
    return results


def _start(function: Callable[[A], R], share: Sequence[A]) -> _Fork:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The other threads of this process do not exist in the fork, and it uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        _work(function, share, writing)
    os.close(writing)
    return _Fork(process, reading)


def _work(function: Callable[[A], R], share: Sequence[A], pipe: int) -> NoReturn:
    """Send the results of a share, and end this process, which is the fork."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A terminal sends Ctrl-C to the forks too, and the first process decides what it means.
        signal.signal(number, signal.SIG_IGN)
    try:
        payload = memoryview(pickle.dumps([_sendable(function, each) for each in share]))
        while payload:
            payload = payload[os.write(pipe, payload) :]
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


def _received(fork: _Fork) -> list[Any]:
    pieces = []
    while piece := os.read(fork.pipe, _CHUNK):
        pieces.append(piece)
    if not pieces:
        raise HarnessError("a process that ran the check ended by itself; run with -n 1 to see how")
    return [pickle.loads(each) for each in pickle.loads(b"".join(pieces))]
