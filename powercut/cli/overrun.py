"""Overruns: checks that run on when the time of a command is over, and are ended by an alarm."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from powercut.explorer.running_check import interrupt_check

GRACE_S: Final = 1.0
"""The time that a check has after the end, and that each later one has."""


class Overrun:
    """Interrupts the checks of this process a second after the time is over."""

    def __init__(self) -> None:
        self._before: tuple[signal._HANDLER, tuple[float, float]] | None = None

    @contextmanager
    def bounded(self, seconds: float | None) -> Iterator[None]:
        """Let the time of the context be over in ``seconds``; with None, only by ``end``."""
        try:
            if seconds is not None:
                self.end(max(seconds, 0.0))
            yield
        finally:
            if self._before is not None:
                handler, timer = self._before
                signal.setitimer(signal.ITIMER_REAL, *timer)
                signal.signal(signal.SIGALRM, handler)
                self._before = None

    def end(self, seconds: float = 0.0) -> None:
        """Let the time be over in ``seconds``."""
        if self._before is None:
            handler = signal.signal(signal.SIGALRM, lambda _number, _frame: interrupt_check())
            self._before = handler, signal.getitimer(signal.ITIMER_REAL)
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S, GRACE_S)
