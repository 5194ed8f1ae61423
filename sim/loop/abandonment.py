"""How the coroutines of a dead lifetime go: closed at once, and without a word.

A suspended coroutine cannot be dropped as it is: the garbage collector would close it
later, in the middle of the next lifetime, and its clean-up would run there. So it is
closed now, against dead ports. Clean-up that awaits something is closed again where it
waits; what will not end after ``MOST_CLOSES`` of that is kept for ever, suspended.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from types import CoroutineType
from typing import Any, Final

from sim.errors import PowerOff, SimulatedCrash

MOST_CLOSES: Final = 100

# What clean-up code may raise; Ctrl-C, and what a test runner stops a test with, goes through.
_DYING: Final = (
    Exception, GeneratorExit, asyncio.CancelledError, SimulatedCrash, PowerOff,
)  # fmt: skip


def abandon(
    tasks: Sequence[asyncio.Task[Any]], generators: Sequence[AsyncGenerator[Any, Any]]
) -> None:
    """Close the coroutines of ``tasks`` and then ``generators``, in their order."""
    with _silence():
        _close_steps(tasks, generators)
        for task in tasks:
            coroutine = task.get_coro()
            if coroutine is not None:
                waiting = _handed_to(coroutine)
                _close(coroutine, coroutine.close)
                for argument in waiting:
                    argument.close()
        for generator in generators:
            _close(generator, partial(_close_generator, generator))


def _handed_to(coroutine: Any) -> list[CoroutineType[Any, Any, Any]]:
    """Return the coroutines among the arguments of one that never began; nobody awaits them."""
    frame = coroutine.cr_frame if isinstance(coroutine, CoroutineType) else None
    if frame is None or getcoroutinestate(coroutine) != CORO_CREATED:
        return []
    return [local for local in frame.f_locals.values() if isinstance(local, CoroutineType)]


def _close_steps(
    tasks: Sequence[asyncio.Task[Any]], generators: Sequence[AsyncGenerator[Any, Any]]
) -> None:
    """Close the generators that stand in the middle of a step, the innermost first.

    Before Python 3.13, to close a coroutine leaves such a generator for ever "already
    running", and all that it holds in memory: closing the step that drives it does nothing
    (python/cpython#117881). To throw into the step works in every version.
    """
    driving = [_awaited(generator.ag_await) for generator in reversed(generators)]
    driving += [_awaited(task.get_coro()) for task in tasks]
    for step in driving:
        # Python has no public name for the type.
        if type(step).__name__ == "async_generator_asend":
            with suppress(*_DYING):
                step.throw(GeneratorExit)


def _awaited(coroutine: Any) -> Any:
    """Return what the innermost waits for of the coroutines that await each other."""
    waiting = coroutine
    while isinstance(waiting, CoroutineType):
        waiting = waiting.cr_await
    return waiting


def abandon_generator(generator: AsyncGenerator[Any, Any]) -> None:
    """Close one asynchronous generator."""
    with _silence():
        _close(generator, partial(_close_generator, generator))


def _close_generator(generator: AsyncGenerator[Any, Any]) -> None:
    closing = generator.aclose()
    try:
        closing.send(None)
    except StopIteration:
        return
    closing.close()


def _close(suspended: object, close: Callable[[], None]) -> None:
    for _ in range(MOST_CLOSES):
        with suppress(*_DYING):
            close()
        if _is_over(suspended):
            return
    # A reference that nobody gives back: the end of the interpreter would resume it as well,
    # and might never come.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(suspended))


def _is_over(suspended: object) -> bool:
    return all(
        getattr(suspended, name, None) is None for name in ("cr_frame", "gi_frame", "ag_frame")
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Have neither warnings nor exceptions of finalizers told to anyone."""
    told = sys.unraisablehook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.unraisablehook = lambda _: None
        try:
            yield
        finally:
            sys.unraisablehook = told
