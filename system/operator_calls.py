"""The operator's calls: each runs to its end, even when its caller is cancelled.

A caller may be cancelled or time out (``asyncio.timeout``). An interrupted call would leave a
durable line that was never applied, or a reserved name without an agent. So each call is a
separate task, and ``close`` waits for it.
"""

from __future__ import annotations

from asyncio import Task, create_task, current_task, shield
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OperatorCalls:
    """The calls of one runtime that have not ended."""

    def __init__(self) -> None:
        self._under_way: dict[Task[Any], None] = {}

    def begin(self, call: Coroutine[Any, Any, T], name: str) -> Task[T]:
        """Start a call; callers await the task under ``shield``."""
        task = create_task(call, name=f"the operator's {name}")
        self._under_way[task] = None
        task.add_done_callback(self._ended)
        return task

    def others(self) -> list[Task[Any]]:
        """Return the calls that are under way, except that of the current task."""
        asking = current_task()
        return [call for call in self._under_way if call is not asking and not call.done()]

    def _ended(self, task: Task[Any]) -> None:
        del self._under_way[task]
        # Its caller may have ended; asyncio logs exceptions that were never retrieved.
        if not task.cancelled():
            task.exception()


class HasCalls(Protocol):
    """An object some of whose methods are calls of the operator."""

    @property
    def calls(self) -> OperatorCalls:
        """The calls that are under way."""
        ...


S = TypeVar("S", bound=HasCalls)


def uncancellable(
    call: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Run a method to its end even when its caller is cancelled."""

    @wraps(call)
    async def begun(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await shield(self.calls.begin(call(self, *args, **kwargs), call.__name__))

    return begun
