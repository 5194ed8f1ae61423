"""One processor for a program and its disk.

A request and its reply each wake the other side. Between two processors of a virtual machine that
takes longer than all the rest of a request; on one it is a switch between two processes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_libc: Final = ctypes.CDLL(None, use_errno=True)


@contextmanager
def one_processor() -> Iterator[None]:
    """Keep this thread, and the processes that it starts, on the processor on which it runs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_libc.sched_getcpu()})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
