"""Snapshots: a log that has grown long begins a new segment, between two turns of its agent.

A snapshot keeps the ids of those lines that another log may still demand, and for each sender
the number of its last line of which everything has arrived.
"""

from __future__ import annotations

from collections.abc import Iterator

from system.agents.agent import Agent
from system.agents.message import USER
from system.agents.orchestrator import Orchestrator
from system.errors import NotPlainJson, RuntimeRefused, StorageError
from system.ports import JsonObject


class Snapshots:
    """Takes a snapshot where more than ``most_lines`` lines follow the last one."""

    def __init__(self, orchestrator: Orchestrator, most_lines: int) -> None:
        self._orchestrator = orchestrator
        self._most_lines = most_lines
        # The next attempt for a log whose snapshot was refused: the number of its line.
        self._not_before: dict[str, int] = {}

    async def take_if_due(self, agent: Agent) -> None:
        """Begin a new segment of the agent's log if the last one is long; costs nothing if not.

        If the disk refuses it, the old segment goes on, and the next attempt is made when as
        many lines again have been written.
        """
        log, seq = agent.log, agent.history.seq
        if not (agent.alive and log.is_snapshot_due(self._most_lines)):
            return
        if seq < self._not_before.get(agent.session_id, 0):
            return
        try:
            if await self._has_records(agent):
                await log.begin_segment(lambda: self._snapshot_of(agent))
        except (OSError, StorageError, NotPlainJson, RuntimeRefused):
            self._not_before[agent.session_id] = seq + self._most_lines

    async def _has_records(self, agent: Agent) -> bool:
        """Make the records of all turns so far durable without their lines."""
        recording = self._orchestrator.recording
        if recording is None or agent.agent_id == USER:
            return True
        return await recording.settle_entries()

    def _snapshot_of(self, agent: Agent) -> JsonObject:
        history, orchestrator = agent.history, self._orchestrator
        if orchestrator.unserved or orchestrator.lost or agent.agent_id == USER:
            # A log that was not read may demand any id, and every message to USER may be
            # acknowledged again.
            return history.snapshot(history.enqueued, history.controls, history.dispatched_of)
        demanded = set(self._demanded_of(agent))
        marks = {
            source.session_id: source.history.dispatched
            for source in orchestrator.agents.values()
            if source.agent_id in history.sources or source.session_id in history.dispatched_of
        }
        return history.snapshot(history.enqueued & demanded, history.controls & demanded, marks)

    def _demanded_of(self, agent: Agent) -> Iterator[str]:
        """Yield the ids of lines in the agent's log that a log may demand at the next boot."""
        for source in self._orchestrator.agents.values():
            for turn in source.history.promises.values():
                outbox = turn.outbox
                yield from (message.message_id for message in outbox.messages)
                yield from (f"{message.message_id}.error" for message in outbox.messages)
                yield from (spawn.bootstrap_id for spawn in outbox.spawned)
                yield from (control.control_id for control in outbox.controls)
            yield from (f"{key}.error" for key in source.history.unreachable)
        yield from (f"{key}.notice" for key in agent.history.subscriptions)
