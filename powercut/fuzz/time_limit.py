"""A time limit for code that may not end: it is interrupted, as by Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_GRACE_S: Final = 1.0
"""Code that ends by itself when its time is over does so within this time."""


class TimeOver(KeyboardInterrupt):
    """The time of the code is over.

    Cause: a loop that does not end, or a call that takes long. It is no ``Exception``, so that
    programs do not catch it.
    """


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise ``TimeOver`` in the block a second after its time is over, and each second from then.

    Use it in the first thread of a process. An alarm that was set before is set again afterwards.
    """
    before = signal.signal(signal.SIGALRM, _end)
    alarm = signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_S, _GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *alarm)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise TimeOver
