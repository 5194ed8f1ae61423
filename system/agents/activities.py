"""The activities that are under way in this boot: one task each, from intent to outcome."""

from __future__ import annotations

from asyncio import CancelledError, Task, wait
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from system.agents.durable_work import DurableWork
from system.durable.activity import Activity, ActivityStatus
from system.durable.activity_runner import ActivityRunner
from system.errors import RuntimeRefused, StorageError
from system.ports import Host

StartTask: TypeAlias = Callable[[Coroutine[None, None, None], str], Task[None]]


class Activities:
    """Performs the activities of a root, from ``start`` on.

    ``stop`` cancels only the pauses between two attempts; an attempt that has begun must be
    waited for (``tasks``). The next boot continues.
    """

    def __init__(self, host: Host, durable: DurableWork) -> None:
        self._host: Final = host
        self._durable: Final = durable
        self._runner: ActivityRunner | None = None
        self._start_task: StartTask | None = None
        self._tasks: dict[str, Task[None]] = {}
        self._asked: dict[str, None] = {}
        self._refused: set[str] = set()
        self._pausing: set[str] = set()

    def start(self, start_task: StartTask, keys: Iterable[str]) -> None:
        """Begin to perform the activities ``keys``, and those of all earlier calls of ``begin``.

        ``keys`` are those that the boot has found without an outcome.
        """
        self._start_task = start_task
        self.begin([*keys, *self._asked])

    def stop(self) -> None:
        """Begin nothing more, and end all pauses."""
        self._start_task = None
        for key in self._pausing:
            self._tasks[key].cancel()

    def begin(self, keys: Iterable[str]) -> None:
        """Begin to perform activities whose intents are durable; ``start`` does it if it follows.

        The task of an activity that is under way reads its row once more before it ends, because
        a person may have decided ``again`` since it has read the row.
        """
        for key in keys:
            self._asked[key] = None
            if self._start_task is not None and not self._is_begun(key):
                self._tasks[key] = self._start_task(self._perform(key), f"perform {key}")

    def _is_begun(self, key: str) -> bool:
        """Whether an activity has a task; one that was cancelled has never run."""
        return key in self._tasks and not self._tasks[key].cancelled()

    def tasks(self) -> list[Task[None]]:
        """Return the tasks that are under way."""
        return [task for task in self._tasks.values() if not task.done()]

    async def wait_for(self, key: str) -> bool:
        """Return when no task performs an activity; False if the next boot continues.

        Raises as the task does, if it has a bug.
        """
        if (task := self._tasks.get(key)) is not None:
            await wait([task])
            if not task.cancelled():
                task.result()
        return key not in self._refused

    async def _performed(self, key: str) -> Activity:
        runner = self._runner
        if runner is None:
            durable, host = self._durable, self._host
            assert durable.state is not None
            assert durable.stores is not None
            self._runner = runner = ActivityRunner(
                durable.state, durable.stores.activities, host.effects, host.clock, host.ids
            )
        return await runner.perform(key, lambda delay_ns: self._pause(key, delay_ns))

    async def _perform(self, key: str) -> None:
        with suppress(CancelledError):
            while self._start_task is not None and key in self._asked:
                del self._asked[key]
                self._refused.discard(key)
                try:
                    row = await self._performed(key)
                except (StorageError, RuntimeRefused):
                    # It cannot be attempted in this boot, so the next one decides.
                    self._refused.add(key)
                else:
                    # A task that was cancelled has left an attempt without an outcome.
                    if row.status is ActivityStatus.INTENT and row.epoch is not None:
                        self._refused.add(key)
        del self._tasks[key]
        self._durable.changed()

    async def _pause(self, key: str, delay_ns: int) -> None:
        if self._start_task is None:
            raise CancelledError
        self._pausing.add(key)
        try:
            await self._host.clock.sleep(delay_ns)
        finally:
            self._pausing.discard(key)
