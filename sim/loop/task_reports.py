"""Reports on tasks: where each one waits, and the failures that were never retrieved."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from os.path import dirname
from types import CodeType, FrameType
from typing import Any, Final, Protocol

_ASYNCIO: Final = dirname(asyncio.__file__)
_KINDS: Final = (("cr_frame", "cr_await"), ("ag_frame", "ag_await"), ("gi_frame", "gi_yieldfrom"))

# Task.exception() would mark the exception as retrieved.
never_retrieved: Final = attrgetter("_log_traceback")


class ReadyCall(Protocol):
    """A call that will be made; a task that has ended is an argument of its callbacks."""

    @property
    def args(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class Unhandled:
    """A failure that was never retrieved; ``task`` is the name of the task, if it was one."""

    message: str
    failure: BaseException | None
    task: str = ""

    def __str__(self) -> str:
        where = f" task={self.task}" if self.task else ""
        return f"{self.message}:{where} {self.failure!r}"


class UnhandledFailures:
    """The failures of one event loop that were not returned by ``take`` yet."""

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures: list[Unhandled] = []

    def add(self, context: dict[str, Any]) -> None:
        """Add a failure, given as the context of an asyncio exception handler."""
        task = context.get("task") or context.get("future")
        name = task.get_name() if isinstance(task, asyncio.Task) else ""
        self._failures.append(
            Unhandled(str(context.get("message", "")), context.get("exception"), name)
        )

    def clear(self) -> None:
        """Drop all failures."""
        self._failures.clear()

    def take(
        self, tasks: Iterable[asyncio.Task[Any]], ready: Sequence[ReadyCall]
    ) -> tuple[Unhandled, ...]:
        """Remove and return all failures, with those of ``tasks`` that have ended.

        A task with a callback among the ``ready`` calls may still have its exception
        retrieved, so it is left out.
        """
        for task in tasks:
            if task.done() and never_retrieved(task) and not _has_callback(task, ready):
                message = "its exception was never retrieved"
                self._failures.append(Unhandled(message, task.exception(), task.get_name()))
        taken, self._failures = tuple(self._failures), []
        return taken


def _has_callback(task: asyncio.Task[Any], ready: Sequence[ReadyCall]) -> bool:
    return any(argument is task for call in ready for argument in call.args)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One task that is not done.

    ``place`` is file, line and function of its innermost await outside of asyncio; ``call``
    is the function of asyncio that it awaits there, empty if there is none.
    """

    task: str
    coroutine: str
    place: str
    call: str

    def __str__(self) -> str:
        call = f" for {self.call}" if self.call else ""
        return f"{self.task} ({self.coroutine}) waits{call} at {self.place}"


def waiting_of(tasks: Iterable[asyncio.Task[Any]]) -> list[Waiting]:
    """Return the place of each task, in their order."""
    return [_waiting(task) for task in tasks]


def _waiting(task: asyncio.Task[Any]) -> Waiting:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    place, call = "its first line", ""
    for code, line in _stack(coroutine):
        if not code.co_filename.startswith(_ASYNCIO):
            place, call = f"{code.co_filename}:{line} in {code.co_qualname}", ""
        elif not call:
            call = code.co_qualname
    return Waiting(task.get_name(), name, place, call)


def _stack(awaited: object) -> Iterator[tuple[CodeType, int]]:
    """Yield code and line of each suspended frame, from the outermost await to the innermost."""
    while awaited is not None:
        for frame_name, await_name in _KINDS:
            if hasattr(awaited, frame_name):
                frame: FrameType | None = getattr(awaited, frame_name)
                if frame is not None:
                    yield frame.f_code, frame.f_lineno
                awaited = getattr(awaited, await_name)
                break
        else:
            awaited = _wrapped(awaited)


def _wrapped(awaited: object) -> object:
    """Return the generator inside an ``anext()`` or similar, which has no attribute for it."""
    if type(awaited).__name__.startswith(("async_generator_", "anext_", "coroutine_wrapper")):
        for held in gc.get_referents(awaited):
            if isinstance(held, AsyncGenerator) or hasattr(held, "cr_frame"):
                return held
    return None
