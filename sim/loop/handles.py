"""What the simulated event loop has promised to call: at once, or at a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol

from sim.loop.workers import Job


class ReadyHandle(asyncio.Handle):
    """A call that is ready to run; ``callback`` is None once it was cancelled.

    The slots of the base class stay empty: filling them costs as much as the call.
    """

    __slots__ = ("args", "callback", "context")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context):
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        """Take the call back."""
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        """Say whether the call was taken back."""
        return self.callback is None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.callback!r}>"


class Timers(Protocol):
    """Whoever keeps the timers, and wants to know of those that were cancelled."""

    def timer_cancelled(self) -> None: ...


class MomentHandle(asyncio.TimerHandle):
    """A call that is ready at ``moment_ns``, virtual; ``callback`` as above."""

    __slots__ = ("args", "callback", "context", "moment_ns", "timers")

    def __init__(
        self,
        moment_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
    ):
        self.moment_ns = moment_ns
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        # None when it is not, or no longer, kept among the timers.
        self.timers: Timers | None = None

    def cancel(self) -> None:
        """Take the call back."""
        if self.callback is not None:
            self.callback = None
            self.args = ()
            if self.timers is not None:
                self.timers.timer_cancelled()

    def cancelled(self) -> bool:
        """Say whether the call was taken back."""
        return self.callback is None

    def when(self) -> float:
        """Return the moment in seconds of ``loop.time()``."""
        return self.moment_ns / 1e9

    def __repr__(self) -> str:
        return f"<{type(self).__name__} moment_ns={self.moment_ns} {self.callback!r}>"

    def __hash__(self) -> int:
        return self.moment_ns

    def __eq__(self, other: object) -> bool:
        return self is other


def is_free(handle: ReadyHandle | MomentHandle) -> bool:
    """Say whether a handle may overtake others: steps of tasks, calls of workers, timers."""
    callback = handle.callback
    return isinstance(handle, MomentHandle) or isinstance(
        callback if isinstance(callback, Job) else getattr(callback, "__self__", None),
        (asyncio.Task, Job),
    )


def name_of(callback: Callable[..., object]) -> str:
    """Return the name of a task whose step this is, or of the function."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))
