"""Collection: the files of an agent that has ended are replaced by a row in ``state.db``.

The lines of an agent may be needed as long as another log may have an outbox entry for its log. So
an agent is collected when the watermark of every log has passed the lines that name it. The archive
is durable before the row, and the row before a file is removed. So the directory of an agent that
has a row is garbage, which the next boot removes.
"""

from __future__ import annotations

from asyncio import CancelledError, Task
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from system.agents import event
from system.agents.agent import Agent
from system.agents.agent_work import under_way
from system.agents.dispatcher import Dispatcher
from system.agents.orchestrator import SECOND_NS
from system.agents.provider_state import ProviderState
from system.archive import Archive, archive_path
from system.durable.ended import Ended, EndedConversation, has_open_work, insert_ended
from system.durable.seconds import seconds_of
from system.durable.state import Transaction
from system.errors import RuntimeRefused, StorageError
from system.option_check import check_least
from system.recovery.recovery_report import RecoveryReport
from system.sessions.session import SessionState
from system.together import together

DAY_NS: Final = 24 * 3600 * SECOND_NS
AGENTS_A_BATCH: Final = 250
RETRY_NS: Final = 3600 * SECOND_NS
"""The nanoseconds after which a refused collection is tried again."""


@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """An agent is collected ``after_ns`` nanoseconds after its end, or later.

    Its lines are kept in the archive until ``archive_ns`` nanoseconds after its end, or for ever
    (None). If that time is over when it is collected, they are not archived.
    """

    after_ns: int = DAY_NS
    archive_ns: int | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a negative time."""
        check_least(0, after_ns=self.after_ns)
        if self.archive_ns is not None:
            check_least(0, archive_ns=self.archive_ns)


class Collector:
    """Collects the agents of one root."""

    def __init__(
        self, dispatcher: Dispatcher, options: CollectionOptions, report: RecoveryReport
    ) -> None:
        self._dispatcher = dispatcher
        self._orchestrator = dispatcher.orchestrator
        self._options = options
        orchestrator = dispatcher.orchestrator
        self._archive = Archive(orchestrator.host, orchestrator.durable, options.archive_ns)
        self._report = report
        # Sessions that have lost something to damage, which are kept unchanged.
        self._damaged = {
            *report.missing, *report.fallbacks, *report.detached,
            *(problem.session_id for problem in report.problems),
        }  # fmt: skip
        # For each agent that has ended since the boot, the turns that were under way then.
        self._under_way: dict[str, frozenset[str]] = {}
        self._timer: Task[None] | None = None
        self._wakes_ns = 0
        self._is_sleeping = False

    # -- the timer -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the timer; if archives are removed, find the oldest one first."""
        if self._archive.may_be_due:
            self._begin(0)
        else:
            self.arm()

    def ended(self, agent: Agent) -> None:
        """Start the timer for an agent that has ended; the turns that are under way may name it."""
        self._under_way[agent.agent_id] = frozenset(self._open_turns())
        self.arm()

    def arm(self, least_ns: int = 0) -> None:
        """Start the timer for the next agent that may be collected, unless it is running.

        It waits at least ``least_ns`` nanoseconds.
        """
        latest_ns = self._orchestrator.host.clock.monotonic_ns() + self._options.after_ns
        is_running = under_way(self._timer) is not None
        if is_running and (self._wakes_ns <= latest_ns or not self._is_sleeping):
            # No agent that ends from now on is due earlier; a collection starts the timer again.
            return
        delay_ns = self._delay_ns(least_ns)
        if delay_ns is not None:
            self._begin(delay_ns)

    def _begin(self, delay_ns: int) -> None:
        if self._orchestrator.closing:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_ns = self._orchestrator.host.clock.monotonic_ns() + delay_ns
        self._is_sleeping = True
        self._timer = self._orchestrator.task(self._collect_after(delay_ns), "collection")

    def stop(self) -> None:
        """Cancel the timer if it is waiting."""
        if self._timer is not None and self._is_sleeping:
            self._timer.cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the collection that is under way."""
        timer = under_way(self._timer)
        return [] if timer is None else [timer]

    def _delay_ns(self, least_ns: int) -> int | None:
        due = [self._due_ns(agent) for agent in self._ended()]
        if self._archive.due_ns is not None:
            due.append(self._archive.due_ns)
        now_ns = self._orchestrator.host.clock.wall_ns()
        return max(least_ns, min(due) - now_ns) if due else None

    async def _collect_after(self, delay_ns: int) -> None:
        try:
            await self._orchestrator.host.clock.sleep(delay_ns)
        except CancelledError:
            return
        self._is_sleeping = False
        try:
            await self.collect()
        finally:
            self._timer = None
        self.arm(RETRY_NS)

    # -- the collection ------------------------------------------------------------------

    async def collect(self) -> int:
        """Collect all agents that can be collected now; return their number.

        Agents whose collection the disk refuses wait for a later one.
        """
        collected = 0
        with suppress(OSError, StorageError, RuntimeRefused):
            await self._write_watermarks()
            while batch := await self._without_open_work(self._collectable()):
                if not await self._are_recorded():
                    break
                batch = batch[:AGENTS_A_BATCH]
                await self._collect(batch)
                collected += len(batch)
            await self._archive.remove_old()
            await self._dispatcher.snapshots.remove_old_segments()
        return collected

    async def _are_recorded(self) -> bool:
        """Make the records of all turns independent of their lines; return whether they are."""
        recording = self._orchestrator.recording
        return recording is None or await recording.settle_entries()

    async def _without_open_work(self, agents: Sequence[Agent]) -> Sequence[Agent]:
        """Return the agents that have no open work in ``state.db``."""
        durable = self._orchestrator.durable
        if not agents or durable.stores is None:
            return agents
        sessions = [agent.session_id for agent in agents]
        is_open = await durable.run(lambda each: [has_open_work(each, one) for one in sessions])
        return [agent for agent, work in zip(agents, is_open, strict=True) if not work]

    async def _write_watermarks(self) -> None:
        """Write the watermark of each idle agent whose log does not have it yet."""
        due = self._orchestrator.host.clock.wall_ns()
        if all(self._due_ns(agent) > due for agent in self._ended()):
            return
        behind = []
        for agent in self._orchestrator.agents.values():
            self._dispatcher.pass_dispatched(agent)
            has_outbox = agent.history.outbox or agent.history.unreachable
            if agent.alive and has_outbox and agent.log.dispatched > agent.history.dispatched:
                behind.append(agent)
        await together(self._write_watermark(agent) for agent in behind)

    async def _write_watermark(self, agent: Agent) -> None:
        with suppress(OSError, StorageError, RuntimeRefused):
            mark = agent.log.dispatched
            await agent.log.commit(lambda: [(event.TURN_DISPATCHED, {"dispatched": mark})])
            self._dispatcher.pass_dispatched(agent)
            await self._orchestrator.wake_or_park(agent)

    def _collectable(self) -> list[Agent]:
        orchestrator = self._orchestrator
        if orchestrator.unserved or orchestrator.lost or orchestrator.durable.is_behind:
            # A log that could not be read may name any of them, and so may work that waits.
            return []
        now_ns = orchestrator.host.clock.wall_ns()
        named = set(self._named())
        sessions = {agent.session_id for agent in orchestrator.agents.values()}
        open_turns = set(self._open_turns())
        return [
            agent
            for agent in self._ended()
            if self._due_ns(agent) <= now_ns
            and self._is_complete(agent)
            and agent.agent_id not in named
            and not sessions & agent.history.children.keys()
            and not any(self._named_in_outbox(agent))
            and open_turns.isdisjoint(self._under_way.get(agent.agent_id, ()))
        ]

    def _open_turns(self) -> Iterator[str]:
        for agent in self._orchestrator.agents.values():
            yield from agent.history.open_turns

    def _named(self) -> Iterator[str]:
        """Yield the agents that a log may still name: in an outbox, a message or a subscription."""
        for agent in self._orchestrator.agents.values():
            history = agent.history
            yield from self._named_in_outbox(agent)
            yield from (message.sender for message in history.pending.values())
            for key, target in history.subscriptions.items():
                if f"{key}.notice" not in history.enqueued:
                    yield target

    def _named_in_outbox(self, agent: Agent) -> Iterator[str]:
        """Yield the agents named in outbox entries of an agent that are not dispatched yet.

        The watermark in the log of a living agent shows which are dispatched. The log of an
        ended agent gets no further lines, and a boot dispatches nothing to collected agents.
        """
        history = agent.history
        dispatched = history.dispatched if agent.alive else agent.log.dispatched
        for seq, turn in history.outbox.items():
            if seq > dispatched:
                yield from (message.recipient for message in turn.outbox.messages)
                yield from (spawn.agent_id for spawn in turn.outbox.spawned)
                yield from (control.target for control in turn.outbox.controls)
        yield from (
            lost.message.error_recipient
            for lost in history.unreachable.values()
            if lost.seq > dispatched
        )

    def _ended(self) -> list[Agent]:
        """Return the agents that have ended and may be collected in this boot.

        Agents that have lost something to damage are kept, and so are the lines of recorded turns
        that a later boot needs.
        """
        return [
            agent
            for agent in self._orchestrator.agents.values()
            if agent.history.ended
            and not (agent.log.stopped or agent.history.recorded)
            and agent.session_id not in self._damaged
        ]

    def _is_complete(self, agent: Agent) -> bool:
        """Whether the log and the record of an agent show its end, and no line of it waits."""
        record = agent.log.record
        return (
            agent.history.termination_logged
            and not (agent.log.is_behind or agent.work.tasks())
            and record is not None
            and record.state is SessionState.TERMINATED
        )

    def _due_ns(self, agent: Agent) -> int:
        return _ended_ns(agent) + self._options.after_ns

    async def _collect(self, batch: Sequence[Agent]) -> None:
        orchestrator = self._orchestrator
        host, store = orchestrator.host, orchestrator.store
        # The last line of a completed agent has no barrier of its own. After a power cut behind the
        # archive, a boot would write another one.
        for agent in batch:
            await agent.log.sync_ended()
        rows = [self._row(agent) for agent in batch]
        kept = [row.session_id for row in rows if row.archive]
        archived = await self._archive.write({each: orchestrator.log_path(each) for each in kept})
        durable = orchestrator.durable
        conversations = [each for agent in batch for each in _conversations(agent)]

        def write(transaction: Transaction) -> None:
            insert_ended(transaction, rows, conversations)
            # The next collection does not repeat it, also if this one is cancelled meanwhile.
            transaction.after_commit(lambda: self._forget(batch, archived))

        await durable.run(write)
        sessions = [agent.session_id for agent in batch]
        await host.workers.run(lambda: store.remove_all(sessions))

    def _row(self, agent: Agent) -> Ended:
        data, history = agent.history.agent, agent.history
        assert data is not None
        ended_ns, archive = _ended_ns(agent), archive_path(agent.session_id)
        return Ended(
            agent.agent_id, agent.session_id, data.name, data.parent_session_id,
            data.request_id, history.ended, seconds_of(ended_ns),
            archive if self._archive.is_kept(ended_ns) else None,
        )  # fmt: skip

    def _forget(self, batch: Sequence[Agent], archived: int) -> None:
        """Forget collected agents; ``archived`` are the bytes of their archives."""
        orchestrator = self._orchestrator
        self._report.collected += len(batch)
        self._report.archived_bytes += archived
        for agent in batch:
            agent.log.close()
            orchestrator.forget(agent)
            orchestrator.tree.remove(agent.agent_id)
            self._under_way.pop(agent.agent_id, None)
        agents = {agent.agent_id for agent in batch}
        sessions = {agent.session_id for agent in batch}
        orchestrator.collected.update(agents)
        for other in orchestrator.agents.values():
            history = other.history
            for of_sessions in (history.children, history.dispatched_of):
                for session_id in of_sessions.keys() & sessions:
                    del of_sessions[session_id]
            for known in (history.completed_children, history.senders, history.sources):
                known.difference_update(agents)


def _ended_ns(agent: Agent) -> int:
    return int(datetime.fromisoformat(agent.history.last_ts).timestamp() * SECOND_NS)


def _conversations(agent: Agent) -> Iterator[EndedConversation]:
    """Yield the conversations that a provider may keep for an agent that has ended."""
    session, record = agent.history.session, agent.log.record
    assert record is not None
    identities = {
        agent.history.identity,
        ProviderState.of_encoded(record.provider_state_blob).identity,
    }
    provider = session.provider if session is not None else record.provider_name
    for identity in sorted(identities - {""}):
        yield EndedConversation(provider, identity, agent.session_id)
