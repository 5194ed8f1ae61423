"""``os._exit`` in a workload or check that runs in this process: it is refused with its line.

It would end powercut without a word. The function takes the place of the real one when the first
of them runs, and calls it everywhere else.
"""

from __future__ import annotations

import os
from inspect import currentframe
from typing import Final

from powercut.place import running_at
from sim.errors import HarnessError
from sim.loop.sandbox import SANDBOX

_LEAVE: Final = os._exit
_REFUSING: Final[list[int]] = []
"""The processes that refuse it, the innermost last; one that was forked of them has its own end."""


class ExitsRefused:
    """Raises ``HarnessError`` where the block calls ``os._exit`` in this process.

    A class, because a generator as a context manager takes several times as long.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        if os._exit is _LEAVE:
            vars(os)["_exit"] = _exit
            SANDBOX.follow([(_LEAVE, _exit)])
        _REFUSING.append(os.getpid())

    def __exit__(self, *_failure: object) -> None:
        _REFUSING.pop()


def _exit(status: int) -> None:  # the name by which the sandbox refuses it
    if _REFUSING and _REFUSING[-1] == os.getpid():
        at = running_at(currentframe())
        raise HarnessError(
            f"os._exit was called{at}; it would end powercut as well; raise an exception, or return"
        )
    _LEAVE(status)
