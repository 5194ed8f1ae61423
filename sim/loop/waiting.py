"""Where tasks stand: which call each one waits in, for the report of a stuck world."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from os.path import dirname
from types import CodeType, FrameType
from typing import Any, Final

_ASYNCIO: Final = dirname(asyncio.__file__)
_KINDS: Final = (("cr_frame", "cr_await"), ("ag_frame", "ag_await"), ("gi_frame", "gi_yieldfrom"))


@dataclass(frozen=True, slots=True)
class Waiting:
    """One task that is not done.

    ``place`` is file and line of its innermost await outside of asyncio; ``call`` is what
    of asyncio it waits in, empty if it is nothing by name.
    """

    task: str
    coroutine: str
    place: str
    call: str

    def __str__(self) -> str:
        call = f" for {self.call}" if self.call else ""
        return f"{self.task} ({self.coroutine}) waits{call} at {self.place}"


def waiting_of(tasks: Iterable[asyncio.Task[Any]]) -> list[Waiting]:
    """Return where each task stands, in their order."""
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
    """Yield code and line of what is suspended, from the outermost await to the innermost."""
    while awaited is not None:
        for frame_name, await_name in _KINDS:
            if hasattr(awaited, frame_name):
                frame: FrameType | None = getattr(awaited, frame_name)
                if frame is not None:
                    yield frame.f_code, frame.f_lineno
                awaited = getattr(awaited, await_name)
                break
        else:
            awaited = _behind(awaited)


def _behind(awaited: object) -> object:
    """Return the generator behind ``anext()`` and its kind, which do not show it themselves."""
    if type(awaited).__name__.startswith(("async_generator_", "anext_", "coroutine_wrapper")):
        for held in gc.get_referents(awaited):
            if isinstance(held, AsyncGenerator) or hasattr(held, "cr_frame"):
                return held
    return None
