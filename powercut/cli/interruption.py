"""Interruptions of a command: a signal, and those that follow it within a second.

GNU ``timeout`` sends its signal to the process, and then to the group of the process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Any, Final, TypeAlias

import click

Handler: TypeAlias = Callable[[int, FrameType | None], Any]
Clock: TypeAlias = Callable[[], float]

ONE_INTERRUPTION_S: Final = 1.0


def once(handler: Handler, last: float = -inf, clock: Clock = time.monotonic) -> Handler:
    """Return a handler that calls ``handler`` once for all signals of an interruption.

    ``last`` is the time in seconds at which one has begun already. ``clock`` is a default
    value because the sandbox of a target replaces the clocks in all modules.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = clock()
        if now - last >= ONE_INTERRUPTION_S:
            last = now
            handler(number, frame)

    return handle


class Interruption:
    """The first SIGINT, SIGTERM or SIGHUP during the work; ``happened`` is whether one came.

    ``then`` is called when it comes.
    """

    def __init__(
        self, clock: Clock = time.monotonic, then: Callable[[], None] = lambda: None
    ) -> None:
        self.happened = False
        self._clock = clock
        self._then = then

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let the first interruption raise nothing: the work of the context ends by itself.

        The second one interrupts at once, also after the work, until the command has ended.
        """
        before = {
            number: handler
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if callable(handler := signal.getsignal(number))
        }

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def interrupt(number: int, frame: FrameType | None) -> None:
            restore()
            before[signal.Signals(number)](number, frame)

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self.happened:  # this handler was itself interrupted
                return
            self.happened = True
            second = once(interrupt, self._clock(), self._clock)
            for number in before:
                signal.signal(number, second)
            click.echo("interrupted: these are the results so far", err=True)
            self._then()

        for number in before:
            signal.signal(number, stop)
        try:
            yield
        finally:
            if self.happened:
                click.get_current_context().call_on_close(restore)
            else:
                restore()
