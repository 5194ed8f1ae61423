"""The interruption of a command that reports what it has found until then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click


class Interruption:
    """The first SIGINT, SIGTERM or SIGHUP during the work; ``happened`` is whether one came."""

    def __init__(self) -> None:
        self.happened = False

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let the first of these signals raise nothing: the work of the context ends by itself.

        The second one interrupts at once.
        """
        before = {
            number: handler
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if callable(handler := signal.getsignal(number))
        }

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def stop(_number: int, _frame: FrameType | None) -> None:
            restore()
            self.happened = True
            click.echo("interrupted: these are the results so far", err=True)

        for number in before:
            signal.signal(number, stop)
        try:
            yield
        finally:
            restore()
