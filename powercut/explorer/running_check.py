"""The check that runs in this process: it can be interrupted when the time is over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from powercut.explorer.ticker import Stopped
from powercut.place import Stack

_processes: list[int] = []
"""The process of each check that runs; a fork inherits those of its parent."""


@contextmanager
def running_check() -> Iterator[None]:
    """Let ``interrupt_check`` end the block, which is a call of a check.

    ``Stopped`` then has the line of the check.
    """
    try:
        _processes.append(os.getpid())
        yield
    except Stopped as stopped:
        raise Stopped(Stack().raised_at(stopped.__traceback__)) from None
    finally:
        _processes.pop()


def interrupt_check() -> None:
    """Raise ``Stopped`` if a check runs in this process; called by the handler of a signal."""
    if _processes and _processes[-1] == os.getpid():
        raise Stopped
