"""The background work of one agent: the task that takes its turns, and the one that retries."""

from __future__ import annotations

from asyncio import Lock, Task
from typing import Final

from system.ports import Clock


def under_way(task: Task[None] | None) -> Task[None] | None:
    """Return a task that has not ended, or None.

    The task is asked, because one that is cancelled before its first step never marks its end.
    """
    return None if task is None or task.done() else task


class BackgroundWork:
    """At most one task at a time, which may pause.

    A close waits for a task that runs, and cancels one that only waits for a time.
    """

    __slots__ = ("_pausing", "_task")

    def __init__(self) -> None:
        self._task: Task[None] | None = None
        self._pausing = False

    @property
    def task(self) -> Task[None] | None:
        """The task that does the work now."""
        return under_way(self._task)

    def begin(self, task: Task[None]) -> None:
        """Register the task that does the work now."""
        assert self.task is None, "the work is under way"
        self._task = task

    def end(self) -> None:
        """Mark the end of the work; called by its task, if that goes on with other work."""
        assert not self._pausing, "a task ends while it pauses"
        self._task = None

    async def pause(self, clock: Clock, delay_ns: int) -> None:
        """Wait ``delay_ns`` nanoseconds; ``cancel_pause`` ends the task meanwhile."""
        assert not self._pausing, "two pauses at a time"
        self._pausing = True
        try:
            await clock.sleep(delay_ns)
        finally:
            self._pausing = False

    def cancel_pause(self) -> None:
        """Cancel the task if it pauses."""
        if self.task is not None and self._pausing:
            self.task.cancel()


class AgentWork:
    """Both kinds of background work of one agent.

    ``turns`` takes its turns, ``retry`` writes lines that the disk has refused. ``turn`` is
    locked while a turn, or the agent's end by the operator, is under way. ``trouble`` is the
    reason why the last attempt of either kind failed, or is empty.
    """

    __slots__ = ("retry", "trouble", "turn", "turns")

    def __init__(self) -> None:
        self.turns: Final = BackgroundWork()
        self.retry: Final = BackgroundWork()
        self.turn: Final = Lock()
        self.trouble = ""

    def tasks(self) -> list[Task[None]]:
        """Return the tasks that are under way."""
        return [work.task for work in (self.turns, self.retry) if work.task is not None]

    def cancel_pauses(self) -> None:
        """Cancel the tasks that only wait for a time."""
        self.turns.cancel_pause()
        self.retry.cancel_pause()
