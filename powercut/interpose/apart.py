"""``run_apart``: run a function in a forked process, which ends with it.

The fork has every module that was imported, and nothing that it does to them comes back: a
cache that a program fills in one run cannot answer for the disk in the next one.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from powercut.place import is_program
from sim.errors import HarnessError

_DUMP: Final = signal.SIGRTMAX
_DUMP_SECONDS: Final = 2.0
_CHUNK: Final = 1 << 20
_FRAME: Final = re.compile(rb'File "(.+?)", line (\d+) in (.+)')


class NotReturned(HarnessError):
    """The process of a task did not end in its time (``is_endless``), or ended by itself.

    ``statement`` says so, and ``at`` is the line of the program, empty if it is not known.

    Cause: a loop, a wait, a call such as ``os._exit``, or a signal. Cure: the message has it.
    """

    def __init__(self, statement: str, remedy: str, at: str = "", *, is_endless: bool) -> None:
        place = f"; it is at {at}" if at else ""
        super().__init__(f"{statement}{place}; {remedy}")
        self.statement = statement
        self.at = at.partition(" in ")[0]
        self.is_endless = is_endless


def run_apart(task: Callable[[], bytes], seconds: float, title: str) -> bytes:
    """Return the bytes that ``task`` returns in a forked process.

    Raises ``NotReturned`` if the process ends by itself, and if it does not end within
    ``seconds``, with the line at which it is. ``title`` begins these sentences.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):
            stream.flush()
    result, result_end = os.pipe()
    stack, stack_end = os.pipe()
    with warnings.catch_warnings():
        # The other threads of this process do not exist in the fork, and it uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _work(task, result_end, stack_end)
    os.close(result_end)
    os.close(stack_end)
    status = 0
    try:
        payload = _read(result, seconds)
        if payload is None:
            os.kill(child, _DUMP)
            place = _place(_read(stack, _DUMP_SECONDS, partly=True) or b"")
            raise NotReturned(
                f"{title} did not end within {seconds:g} s",
                "end the loop or the wait, or give it more time with Limits(timeout=...) or "
                "--timeout",
                place,
                is_endless=True,
            )
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(result)
        os.close(stack)
    if not payload:
        code = os.waitstatus_to_exitcode(status)
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        statement = f"{title} ended its process by itself, with {how}"
        raise NotReturned(statement, "let it return", is_endless=False)
    return payload


def _work(task: Callable[[], bytes], result: int, stack: int) -> NoReturn:
    """Run ``task`` in this process, which is the fork, and end it."""
    # The functions of now: the program may replace them.
    write, leave = os.write, os._exit
    # A collection would write to every page that the two processes share.
    gc.freeze()
    # A terminal sends its signals to this process too, and the first one decides what they mean.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.register(_DUMP, file=stack, all_threads=True, chain=False)
    try:
        payload = memoryview(task())
        for stream in (sys.stdout, sys.stderr):
            with suppress(ValueError, OSError):
                stream.flush()
        while payload:
            payload = payload[write(result, payload) :]
    finally:
        leave(0)


def _read(descriptor: int, seconds: float, *, partly: bool = False) -> bytes | None:
    """Read to the end; after ``seconds`` return None, or ``partly`` the bytes so far."""
    deadline = time.monotonic() + seconds
    pieces: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        ready = left > 0 and select.select([descriptor], [], [], left)[0]
        if not ready:
            return b"".join(pieces) if partly else None
        piece = os.read(descriptor, _CHUNK)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        if partly and b"Current thread" in b"".join(pieces):
            # The dump has no end mark; its last thread is the one that was asked.
            deadline = min(deadline, time.monotonic() + _DUMP_SECONDS / 10)


def _place(dump: bytes) -> str:
    """Return the innermost line of the program in a dump of faulthandler; empty without one.

    Frames outside of the task are not of the program: they are of the command, or of pytest.
    """
    _, _, current = dump.rpartition(b"Current thread")
    for file, line, function in _FRAME.findall(current):
        name = os.fsdecode(file)
        if name == __file__ and function == _work.__name__.encode():
            break
        if is_program(name):
            shown = name.removeprefix(os.getcwd() + os.sep)
            return f"{shown}:{int(line)} in {os.fsdecode(function)}"
    return ""
