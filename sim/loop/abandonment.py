"""Closing the coroutines of a lifetime that has ended: at once, and silently.

A suspended coroutine cannot simply be dropped: the garbage collector would close it later,
in the middle of the next lifetime, and its clean-up code would run there. It is closed at
the end of its own lifetime instead, when all ports are off. Clean-up code that awaits is
closed again at that await; a coroutine that is still suspended after ``MAX_CLOSES`` of
these is kept, suspended, until the interpreter ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from operator import attrgetter
from types import CoroutineType
from typing import Any, Final, TypeAlias

from sim.errors import PowerOff, SimulatedCrash

Generator: TypeAlias = AsyncGenerator[Any, Any]

MAX_CLOSES: Final = 100

_awaited_by: Final = attrgetter("ag_await")

# The exceptions of clean-up code. KeyboardInterrupt, and the exception by which a test runner
# stops a test, pass through.
_DROPPED: Final = (
    Exception, GeneratorExit, asyncio.CancelledError, SimulatedCrash, PowerOff,
)  # fmt: skip


class LiveGenerators:
    """The asynchronous generators that ``loop`` has started and that still exist.

    ``started`` and ``dropped`` are the hooks of ``sys.set_asyncgen_hooks``.
    """

    __slots__ = ("_live", "_loop", "_started")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # None after the end of the lifetime, which breaks the reference cycle.
        self._loop: asyncio.AbstractEventLoop | None = loop
        self._live: dict[int, weakref.ref[Generator]] = {}
        self._started = 0

    def started(self, generator: Generator) -> None:
        """Register a generator at its first iteration."""
        self._started = number = self._started + 1
        live = self._live
        live[number] = weakref.ref(generator, lambda _: live.pop(number, None))

    def dropped(self, generator: Generator) -> None:
        """Close a generator without references: by a task, as asyncio does, or at once."""
        if self._loop is None:
            with _silence():
                _close(generator, partial(_close_generator, generator))
        else:
            self._loop.create_task(_aclose(generator))

    def live(self) -> list[Generator]:
        """Return the generators in the order in which they were started."""
        return [found for known in list(self._live.values()) if (found := known()) is not None]

    def end(self) -> list[Generator]:
        """Return the generators, and close at once all that are dropped later."""
        self._loop = None
        live = self.live()
        self._live.clear()
        return live


async def _aclose(generator: Generator) -> None:
    await generator.aclose()


def abandon(tasks: Sequence[asyncio.Task[Any]], generators: Sequence[Generator]) -> None:
    """Close the coroutines of ``tasks`` and then ``generators``, in their order."""
    with _silence():
        _close_steps(tasks, generators)
        for task in tasks:
            coroutine = task.get_coro()
            if coroutine is not None:
                arguments = _arguments_of(coroutine)
                _close(coroutine, coroutine.close)
                for argument in arguments:
                    argument.close()
        for generator in generators:
            _close(generator, partial(_close_generator, generator))


def _arguments_of(coroutine: Any) -> list[CoroutineType[Any, Any, Any]]:
    """Return the coroutines among the arguments of one that never began: none awaits them."""
    frame = coroutine.cr_frame if isinstance(coroutine, CoroutineType) else None
    if frame is None or getcoroutinestate(coroutine) != CORO_CREATED:
        return []
    return [local for local in frame.f_locals.values() if isinstance(local, CoroutineType)]


def _close_steps(tasks: Sequence[asyncio.Task[Any]], generators: Sequence[Generator]) -> None:
    """Close the generators that are suspended in the middle of a step, the innermost first.

    Before Python 3.13, closing a coroutine leaves such a generator "already running" for
    ever, with all that it holds in memory: closing the step that drives it does nothing
    (python/cpython#117881). Throwing into the step works in every version.
    """
    steps = [_innermost(_awaited_by(generator)) for generator in reversed(generators)]
    steps += [_innermost(task.get_coro()) for task in tasks]
    for step in steps:
        # Python has no public name for the type.
        if type(step).__name__ == "async_generator_asend":
            with suppress(*_DROPPED):
                step.throw(GeneratorExit)


def _innermost(coroutine: Any) -> Any:
    """Return the awaitable at the end of a chain of coroutines that await each other."""
    awaited = coroutine
    while isinstance(awaited, CoroutineType):
        awaited = awaited.cr_await
    return awaited


def _close_generator(generator: Generator) -> None:
    closing = generator.aclose()
    try:
        closing.send(None)
    except StopIteration:
        return
    closing.close()


def _close(suspended: object, close: Callable[[], None]) -> None:
    for _ in range(MAX_CLOSES):
        with suppress(*_DROPPED):
            close()
        if _has_ended(suspended):
            return
    # A reference that is never released: otherwise the end of the interpreter would resume
    # the coroutine as well, and might hang.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(suspended))


def _has_ended(suspended: object) -> bool:
    return all(
        getattr(suspended, name, None) is None for name in ("cr_frame", "gi_frame", "ag_frame")
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Discard warnings, and the exceptions of finalizers."""
    hook = sys.unraisablehook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _: None
        try:
            yield
        finally:
            sys.unraisablehook = hook
