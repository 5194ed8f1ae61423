"""Failures of tasks and callbacks that reach nobody: kept for the harness, never printed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Protocol, TypeAlias

Handler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]

# The method would count as having asked for the exception.
never_asked: Final = attrgetter("_log_traceback")


class Ready(Protocol):
    """A call that will be made; a task that ended is an argument of those that hear of it."""

    @property
    def args(self) -> tuple[Any, ...]: ...


def _is_awaited(task: asyncio.Task[Any], ready: Sequence[Ready]) -> bool:
    return any(argument is task for call in ready for argument in call.args)


@dataclass(frozen=True, slots=True)
class Unhandled:
    """A failure that reached nobody; ``task`` names the task, if it was one."""

    message: str
    failure: BaseException | None
    task: str = ""

    def __str__(self) -> str:
        where = f" task={self.task}" if self.task else ""
        return f"{self.message}:{where} {self.failure!r}"


class UnhandledFailures:
    """The failures of one event loop that were not told yet."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[Unhandled] = []

    def keep(self, context: dict[str, Any]) -> None:
        """Keep what asyncio tells an exception handler."""
        task = context.get("task") or context.get("future")
        name = task.get_name() if isinstance(task, asyncio.Task) else ""
        self._kept.append(
            Unhandled(str(context.get("message", "")), context.get("exception"), name)
        )

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def take(
        self, tasks: Iterable[asyncio.Task[Any]], ready: Sequence[Ready]
    ) -> tuple[Unhandled, ...]:
        """Return all, those of ``tasks`` that ended included, and forget them.

        A task that ended a moment ago has reached nobody yet whose call is among the ``ready``.
        """
        for task in tasks:
            if task.done() and never_asked(task) and not _is_awaited(task, ready):
                told = Unhandled(
                    "nobody asked for its exception", task.exception(), task.get_name()
                )
                self._kept.append(told)
        taken, self._kept = tuple(self._kept), []
        return taken
