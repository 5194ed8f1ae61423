"""The operator's calls that are under way: each goes on to its end, whatever its caller does.

A caller may be cancelled, or wait no longer than it likes (``asyncio.timeout``). Half a call
would be nobody's: a line that is durable and that no memory has folded, a name that is kept
for an agent that nobody creates. So a call is a task of its own, and ``close`` waits for it.
"""

from __future__ import annotations

from asyncio import Future, Task, create_task, current_task, get_running_loop, shield
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Calls:
    """The calls of one runtime that have not ended."""

    def __init__(self) -> None:
        self._under_way: dict[Task[Any], None] = {}

    def begin(self, call: Callable[[], Coroutine[Any, Any, T]], name: str) -> Future[T]:
        """Start a call, and return its outcome; whoever waits for that does so with ``shield``."""
        outcome: Future[T] = get_running_loop().create_future()
        task = create_task(_run(call, outcome), name=f"the operator's {name}")
        self._under_way[task] = None
        task.add_done_callback(self._under_way.pop)
        return outcome

    def others(self) -> list[Task[Any]]:
        """Return the calls that are under way, but for the one that asks."""
        asking = current_task()
        return [call for call in self._under_way if call is not asking and not call.done()]


async def _run(call: Callable[[], Coroutine[Any, Any, T]], outcome: Future[T]) -> None:
    with _Telling(outcome):
        outcome.set_result(await call())


class _Telling:
    """Keeps what is raised inside for whoever waits for ``outcome``, who may have gone."""

    def __init__(self, outcome: Future[Any]) -> None:
        self._outcome = outcome

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(failure, Exception):
            return False
        self._outcome.set_exception(failure)
        # Now asyncio does not miss anybody who asks.
        self._outcome.exception()
        return True


class HasCalls(Protocol):
    """What has methods that are calls of the operator."""

    @property
    def calls(self) -> Calls:
        """Those that are under way."""
        ...


S = TypeVar("S", bound=HasCalls)


def whole(
    call: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Let a method go on to its end also when its caller gives it up."""

    @wraps(call)
    async def begun(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work = partial(call, self, *args, **kwargs)
        return await shield(self.calls.begin(work, call.__name__))

    return begun
