"""Reminders: timers that are durable because each is a promise in its agent's log."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable, Coroutine
from typing import TypeAlias

from system.agents.agent import Agent
from system.agents.message import Message, MessageKind
from system.ports import Host, Json
from system.storage.line import timestamp

RunBeside: TypeAlias = Callable[[Coroutine[None, None, None], str], Task[None]]
Deliver: TypeAlias = Callable[[Agent, Message], Coroutine[None, None, None]]


class Reminders:
    """The reminders of this boot whose time has not come.

    Their due times are wall-clock times; within a boot the monotonic clock counts.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        # Those that are active, and, with their agents, those of them that are still asleep.
        self._tasks: dict[str, Task[None]] = {}
        self._sleeping: dict[str, Agent] = {}

    def start(
        self, agent: Agent, reminder_id: str, run_beside: RunBeside, deliver: Deliver
    ) -> None:
        """Start the timer of a reminder, if it is still active; ``deliver`` brings it then.

        Only the timer holds the two calls: a runtime that is dropped is gone at once, and
        leaves nothing to be collected.
        """
        reminder = agent.history.reminders.get(reminder_id)
        if reminder is None:
            return
        delay_ns = max(0, reminder[0] - self._host.clock.wall_ns())
        work = self._remind(agent, reminder_id, delay_ns, deliver)
        self._tasks[reminder_id] = run_beside(work, f"remind {agent.name()}")
        self._sleeping[reminder_id] = agent

    def stop(self) -> None:
        """Cancel those that are asleep; the next boot starts them again."""
        for reminder_id in self._sleeping:
            self._tasks[reminder_id].cancel()

    def forget(self, agent: Agent) -> None:
        """Cancel the timers of an agent that its log does not wait for any more."""
        for reminder_id, owner in self._sleeping.items():
            if owner is agent and reminder_id not in agent.history.reminders:
                self._tasks[reminder_id].cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the timers, and those that are on their way."""
        return list(self._tasks.values())

    async def _remind(
        self, agent: Agent, reminder_id: str, delay_ns: int, deliver: Deliver
    ) -> None:
        try:
            await self._host.clock.sleep(delay_ns)
            del self._sleeping[reminder_id]
            reminder = agent.history.reminders.get(reminder_id)
            if reminder is not None:
                await deliver(agent, self._message(agent, reminder_id, reminder[1]))
        finally:
            self._sleeping.pop(reminder_id, None)
            del self._tasks[reminder_id]

    def _message(self, agent: Agent, reminder_id: str, payload: Json) -> Message:
        now = timestamp(self._host.clock.wall_ns())
        return Message(
            reminder_id, agent.agent_id, agent.agent_id, MessageKind.REMINDER, payload, now
        )
