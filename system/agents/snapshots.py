"""Snapshots: a long log begins a new segment, between two turns of its agent.

A snapshot keeps the ids of the entries that may be dispatched again, and for each sender the
number of the line up to which its outboxes have all arrived. Before it is written, ids that
only the operator can use again are moved to ``state.db``.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from system.agents.agent import Agent
from system.agents.message import USER
from system.agents.orchestrator import SECOND_NS, Orchestrator
from system.agents.session_data import last_applied
from system.agents.snapshot_data import snapshot_data
from system.durable.applied import record_applied
from system.durable.known_ids import keep_ids
from system.durable.state import Transaction
from system.errors import NotPlainJson, RuntimeRefused, StorageError
from system.ports import JsonObject
from system.storage.line import timestamp

USER_SEGMENT_NS: Final = 30 * 24 * 3600 * SECOND_NS
"""The nanoseconds for which a segment of the log of USER is kept at least."""


class Snapshots:
    """Takes a snapshot of a log if more than ``most_lines`` lines follow the last one."""

    def __init__(self, orchestrator: Orchestrator, most_lines: int) -> None:
        self._orchestrator = orchestrator
        self._most_lines = most_lines
        # For each log whose snapshot was refused, the line number of the next attempt.
        self._not_before: dict[str, int] = {}

    async def take_if_due(self, agent: Agent) -> None:
        """Begin a new segment of the agent's log if the last one is long.

        If the disk refuses it, the log continues in the old segment, and the next attempt is
        made after ``most_lines`` further lines.
        """
        log, seq = agent.log, agent.history.seq
        if not (agent.alive and log.is_snapshot_due(self._most_lines)):
            return
        if seq < self._not_before.get(agent.session_id, 0):
            return
        try:
            if await self._are_recorded(agent):
                known = await self._moved_ids(agent)
                await log.begin_segment(lambda: self._snapshot_of(agent, known))
                if agent.agent_id == USER:
                    await self.remove_old_segments()
        except (OSError, StorageError, NotPlainJson, RuntimeRefused):
            self._not_before[agent.session_id] = seq + self._most_lines

    async def remove_old_segments(self) -> None:
        """Remove old segments of the log of USER, which has no conversation."""
        before_ns = self._orchestrator.host.clock.wall_ns() - USER_SEGMENT_NS
        await self._orchestrator.user.log.remove_old_segments(timestamp(before_ns))

    async def _are_recorded(self, agent: Agent) -> bool:
        """Make the records of all turns independent of their lines; return whether they are."""
        recording = self._orchestrator.recording
        if agent.history.recorded:
            return False
        if recording is None or agent.agent_id == USER:
            return True
        return await recording.settle_entries()

    async def _moved_ids(self, agent: Agent) -> AbstractSet[str]:
        """Move ids that only the operator can use again to ``state.db``; return them.

        The same transaction sets the row in ``applied`` to the last durable line, so a database
        without these ids is recognised as older than the log. If it refuses, the ids stay.
        """
        history, durable, seq = agent.history, self._orchestrator.durable, agent.log.durable_seq
        is_user = agent.agent_id == USER
        ids = history.enqueued - history.pending.keys() if is_user else set(history.from_user)
        if not ids or last_applied(history.outbox, seq) > agent.applied:
            return frozenset()

        def move(transaction: Transaction) -> None:
            keep_ids(transaction, agent.session_id, sorted(ids), are_acknowledged=is_user)
            record_applied(transaction, agent.session_id, seq)

        try:
            await durable.opened()
            await durable.run(move)
        except (OSError, StorageError):
            return frozenset()
        agent.pass_applied(seq)
        history.applied = max(history.applied, seq)
        return ids

    def _snapshot_of(self, agent: Agent, known: AbstractSet[str]) -> JsonObject:
        history, orchestrator = agent.history, self._orchestrator
        if orchestrator.unserved or orchestrator.lost:
            # A log that could not be read may have an entry with any id.
            return snapshot_data(
                history, history.enqueued, history.controls, history.dispatched_of, known
            )
        repeatable = set(self._repeatable_ids(agent))
        ids = history.enqueued & repeatable
        if agent.agent_id == USER:
            ids |= history.enqueued - known
        marks = {
            source.session_id: source.history.dispatched
            for source in orchestrator.agents.values()
            if source.agent_id in history.sources or source.session_id in history.dispatched_of
        }
        return snapshot_data(history, ids, history.controls & repeatable, marks, known)

    def _repeatable_ids(self, agent: Agent) -> Iterator[str]:
        """Yield the ids of entries for the agent's log that the next boot may dispatch again."""
        for source in self._orchestrator.agents.values():
            for turn in source.history.outbox.values():
                outbox = turn.outbox
                yield from (message.message_id for message in outbox.messages)
                yield from (f"{message.message_id}.error" for message in outbox.messages)
                yield from (spawn.bootstrap_id for spawn in outbox.spawned)
                yield from (control.control_id for control in outbox.controls)
            yield from (f"{key}.error" for key in source.history.unreachable)
        yield from (f"{key}.notice" for key in agent.history.subscriptions)
        if (stores := self._orchestrator.durable.stores) is not None:
            yield from stores.reports.kept
