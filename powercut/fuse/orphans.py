"""Processes that outlive the program or check that started them, such as daemons.

A daemon leaves the session of its program, so no signal to the group reaches it. It would go on
without its disk, and the next check would meet its port or its lock. A subreaper is the new parent
of every descendant whose own parent has ended (``PR_SET_CHILD_SUBREAPER``), so it can end them.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

_SET_PARENT_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36

_libc: Final = ctypes.CDLL(None, use_errno=True)


def end_with_parent(number: int) -> None:
    """Get this signal when the parent ends, also if it is killed."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, number)


def adopt_orphans() -> frozenset[int]:
    """Become the parent of the orphans to come; return the children that there are already."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1)
    return _children()


def has_orphans(others: Collection[int]) -> bool:
    """Return whether a child of this process but ``others`` has not ended yet."""
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return any(
        os.waitid(os.P_PID, process, ended) is None for process in _children().difference(others)
    )


def end_orphans(others: Collection[int]) -> None:
    """Kill every child of this process but ``others``, and all descendants of these.

    The program that had them has ended. A kernel without ``/proc/PID/task/TID/children`` shows none
    of them, and they go on.
    """
    while left := _children().difference(others):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)


def _children() -> frozenset[int]:
    found: list[str] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            found += file.read_text(encoding="ascii").split()
    return frozenset(map(int, found))
