"""Timers of reminders. A reminder is durable because its agent's log promises it."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from system.agents.agent import Agent
from system.agents.message import Message, MessageKind
from system.ports import Host
from system.storage.line import timestamp

LONGEST_SLEEP_NS: Final = 600 * 1_000_000_000
"""After ten minutes a timer reads the wall clock again."""

StartTask: TypeAlias = Callable[[Coroutine[None, None, None], str], Task[None]]
Deliver: TypeAlias = Callable[[Agent, Message], Coroutine[None, None, None]]


class Reminders:
    """The timers of this boot.

    Due times are wall-clock times; within a boot the monotonic clock counts. A wall clock that
    was behind when a timer started may be set right later, so a long timer reads it again.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[str, Task[None]] = {}
        # The agents of those timers whose time has not come.
        self._sleeping: dict[str, Agent] = {}

    def start(
        self, agent: Agent, reminder_id: str, start_task: StartTask, deliver: Deliver
    ) -> None:
        """Start the timer of a reminder, if it is still active; it calls ``deliver`` when due.

        Only the timer holds the two callables, so a runtime that is dropped leaves no
        reference cycle.
        """
        reminder = agent.history.reminders.get(reminder_id)
        if reminder is None:
            return
        delay_ns = max(0, reminder.due_ns - self._host.clock.wall_ns())
        work = self._remind(agent, reminder_id, reminder.due_ns, delay_ns, deliver)
        self._tasks[reminder_id] = start_task(work, f"remind {agent.name()}")
        self._sleeping[reminder_id] = agent

    def stop(self) -> None:
        """Cancel the timers whose time has not come; the next boot starts them again."""
        for reminder_id in self._sleeping:
            self._tasks[reminder_id].cancel()

    def drop_cancelled(self, agent: Agent) -> None:
        """Cancel the timers of reminders that are no longer active in the agent's log."""
        for reminder_id, owner in self._sleeping.items():
            if owner is agent and reminder_id not in agent.history.reminders:
                self._tasks[reminder_id].cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the tasks of all timers, of those too that deliver at this moment."""
        return list(self._tasks.values())

    async def _remind(
        self, agent: Agent, reminder_id: str, due_ns: int, delay_ns: int, deliver: Deliver
    ) -> None:
        try:
            await self._sleep(due_ns, delay_ns)
            del self._sleeping[reminder_id]
            reminder = agent.history.reminders.get(reminder_id)
            if reminder is not None:
                now = timestamp(self._host.clock.wall_ns())
                own = agent.agent_id
                await deliver(
                    agent,
                    Message(reminder_id, own, own, MessageKind.REMINDER, reminder.payload, now),
                )
        finally:
            self._sleeping.pop(reminder_id, None)
            del self._tasks[reminder_id]

    async def _sleep(self, due_ns: int, delay_ns: int) -> None:
        """Sleep for ``delay_ns``, or until the wall clock shows ``due_ns`` before that."""
        clock = self._host.clock
        while delay_ns > LONGEST_SLEEP_NS:
            await clock.sleep(LONGEST_SLEEP_NS)
            delay_ns = min(delay_ns - LONGEST_SLEEP_NS, due_ns - clock.wall_ns())
        await clock.sleep(max(0, delay_ns))
