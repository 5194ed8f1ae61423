"""Collection: an agent that has ended leaves a row of ``state.db``, and its files are removed.

The lines of an agent may be needed as long as another log can demand something of it. So it is
collected when all logs that name it say that they are done with it. The archive is durable
before the row, and the row before a file is removed: the directory of an agent that has a row
is garbage, which the next boot removes.
"""

from __future__ import annotations

from asyncio import CancelledError, Task, gather
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from system.agents import event
from system.agents.agent import Agent
from system.agents.dispatcher import Dispatcher
from system.agents.orchestrator import SECOND_NS
from system.durable.ended import Ended, insert_ended
from system.errors import RuntimeRefused, StorageError
from system.ports import FileSystem, Ids
from system.recovery.recovery_report import RecoveryReport
from system.sessions.session import SessionState
from system.storage.atomic_file import read_whole, replace_file
from system.storage.durable_directory import make_durable_directory
from system.storage.segments import segment_path, segments_in

DAY_NS: Final = 24 * 3600 * SECOND_NS
RETRY_NS: Final = 3600 * SECOND_NS
"""After an hour, what could not be collected is tried again."""
ARCHIVE: Final = "archive"


class Lines(Enum):
    """What becomes of the lines of an agent that is collected."""

    ARCHIVE = "archive"
    """They are kept in one file below ``archive/``."""
    REMOVE = "remove"
    """They are removed with its directory."""


@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """An agent is collected ``after_ns`` nanoseconds behind its end, or later."""

    after_ns: int = DAY_NS
    lines: Lines = Lines.ARCHIVE


class Collector:
    """Collects the agents of one root."""

    def __init__(
        self, dispatcher: Dispatcher, options: CollectionOptions, report: RecoveryReport
    ) -> None:
        self._dispatcher = dispatcher
        self._orchestrator = dispatcher.orchestrator
        self._options = options
        self._report = report
        # Sessions of which damage has taken something: they are kept as they are.
        self._damaged = {
            *report.missing, *report.fallbacks, *report.detached,
            *(problem.session_id for problem in report.problems),
        }  # fmt: skip
        self._timer: Task[None] | None = None
        self._is_sleeping = False

    # -- the timer -----------------------------------------------------------------------

    def arm(self, least_ns: int = 0) -> None:
        """Start the timer for the next agent that may be collected; at most one is armed.

        It waits ``least_ns`` nanoseconds at least.
        """
        delay_ns = self._delay_ns(least_ns)
        if self._timer is None and delay_ns is not None and not self._orchestrator.closing:
            self._timer = self._orchestrator.task(self._collect_after(delay_ns), "collection")

    def stop(self) -> None:
        """Cancel the timer if its time has not come."""
        if self._timer is not None and self._is_sleeping:
            self._timer.cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the collection that is under way."""
        return [] if self._timer is None or self._timer.done() else [self._timer]

    def _delay_ns(self, least_ns: int) -> int | None:
        ended = [self._due_ns(agent) for agent in self._ended()]
        now_ns = self._orchestrator.host.clock.wall_ns()
        return max(least_ns, min(ended) - now_ns) if ended else None

    async def _collect_after(self, delay_ns: int) -> None:
        try:
            self._is_sleeping = True
            try:
                await self._orchestrator.host.clock.sleep(delay_ns)
            finally:
                self._is_sleeping = False
            await self.collect()
        except CancelledError:
            return
        finally:
            self._timer = None
        self.arm(RETRY_NS)

    # -- the collection ------------------------------------------------------------------

    async def collect(self) -> int:
        """Collect what can be collected now; return how many agents.

        Agents that the disk refuses to collect wait for a later collection.
        """
        collected = 0
        with suppress(OSError, StorageError, RuntimeRefused):
            await self._write_watermarks()
            while batch := self._collectable():
                await self._collect(batch)
                collected += len(batch)
        return collected

    async def _write_watermarks(self) -> None:
        """Let each log say which of its promises are kept, where it does not say so yet."""
        due = self._orchestrator.host.clock.wall_ns()
        if all(self._due_ns(agent) > due for agent in self._ended()):
            return
        behind = []
        for agent in self._orchestrator.agents.values():
            self._dispatcher.pass_kept(agent)
            has_promises = agent.history.promises or agent.history.unreachable
            if agent.alive and has_promises and agent.log.dispatched > agent.history.dispatched:
                behind.append(agent)
        await gather(*(self._write_watermark(agent) for agent in behind))

    async def _write_watermark(self, agent: Agent) -> None:
        with suppress(OSError, StorageError, RuntimeRefused):
            mark = agent.log.dispatched
            await agent.log.commit(lambda: [(event.TURN_DISPATCHED, {"dispatched": mark})])
            self._dispatcher.pass_kept(agent)
            await self._orchestrator.wake_or_park(agent)

    def _collectable(self) -> list[Agent]:
        orchestrator = self._orchestrator
        if orchestrator.unserved or orchestrator.lost or orchestrator.durable.is_behind:
            # A log that was not read may demand any of them, and so does work that waits.
            return []
        now_ns = orchestrator.host.clock.wall_ns()
        named = set(self._named())
        sessions = {agent.session_id for agent in orchestrator.agents.values()}
        begun = [
            turn.ts
            for agent in orchestrator.agents.values()
            for turn in agent.history.open_turns.values()
        ]
        return [
            agent
            for agent in self._ended()
            if self._due_ns(agent) <= now_ns
            and self._is_complete(agent)
            and agent.agent_id not in named
            and not sessions & agent.history.children.keys()
            and not any(self._unkept(agent))
            and all(ts > agent.history.last_ts for ts in begun)
        ]

    def _named(self) -> Iterator[str]:
        """Yield the agents that a log may still need: by a promise, a message, a subscription."""
        for agent in self._orchestrator.agents.values():
            history = agent.history
            yield from self._unkept(agent)
            yield from (message.sender for message in history.pending.values())
            for key, target in history.subscriptions.items():
                if f"{key}.notice" not in history.enqueued:
                    yield target

    def _unkept(self, agent: Agent) -> Iterator[str]:
        """Yield the agents that the promises of an agent name, but for those that are kept.

        The log of a living agent says itself which these are. One that has ended takes no more
        lines, and its promises to collected agents are no more kept at a boot.
        """
        history = agent.history
        kept = history.dispatched if agent.alive else agent.log.dispatched
        for seq, turn in history.promises.items():
            if seq > kept:
                yield from (message.recipient for message in turn.outbox.messages)
                yield from (spawn.agent_id for spawn in turn.outbox.spawned)
                yield from (control.target for control in turn.outbox.controls)
        yield from (lost.message.sender for lost in history.unreachable.values() if lost.seq > kept)

    def _ended(self) -> list[Agent]:
        """Return the agents that have ended, unless damage has taken something of them."""
        return [
            agent
            for agent in self._orchestrator.agents.values()
            if agent.history.ended
            and not agent.log.stopped
            and agent.session_id not in self._damaged
        ]

    def _is_complete(self, agent: Agent) -> bool:
        """Whether log and record of an agent say that it has ended, and nothing of it is due."""
        record = agent.log.record
        return (
            agent.history.termination_logged
            and not (agent.log.is_behind or agent.schedule.tasks())
            and record is not None
            and record.state is SessionState.TERMINATED
        )

    def _due_ns(self, agent: Agent) -> int:
        ended = datetime.fromisoformat(agent.history.last_ts)
        return int(ended.timestamp() * SECOND_NS) + self._options.after_ns

    async def _collect(self, batch: Sequence[Agent]) -> None:
        orchestrator = self._orchestrator
        host, store = orchestrator.host, orchestrator.store
        if orchestrator.recording is not None and not await orchestrator.recording.settle_entries():
            raise StorageError("recording", "its records are not written")
        archived = 0
        if self._options.lines is Lines.ARCHIVE:
            logs = {agent.session_id: orchestrator.log_path(agent.session_id) for agent in batch}
            archived = await host.workers.run(lambda: write_archives(host.files, host.ids, logs))
        durable = orchestrator.durable
        await durable.opened()
        rows = [self._row(agent) for agent in batch]
        await durable.run(lambda transaction: insert_ended(transaction, rows))
        self._report.collected += len(batch)
        self._report.archived_bytes += archived
        for agent in batch:
            self._forget(agent)
        sessions = [agent.session_id for agent in batch]
        await host.workers.run(lambda: store.remove_all(sessions))

    def _row(self, agent: Agent) -> Ended:
        facts, history = agent.history.agent, agent.history
        assert facts is not None
        archive = archive_path(agent.session_id) if self._options.lines is Lines.ARCHIVE else None
        ended_at = datetime.fromisoformat(history.last_ts).timestamp()
        return Ended(
            agent.agent_id, agent.session_id, facts.name, facts.parent_session_id,
            facts.request_id, history.ended, ended_at, archive,
        )  # fmt: skip

    def _forget(self, agent: Agent) -> None:
        orchestrator = self._orchestrator
        agent.log.close()
        orchestrator.forget(agent)
        orchestrator.tree.remove(agent.agent_id)
        orchestrator.collected.add(agent.agent_id)
        for other in orchestrator.agents.values():
            history = other.history
            history.children.pop(agent.session_id, None)
            history.dispatched_of.pop(agent.session_id, None)
            for known in (history.completed_children, history.senders, history.sources):
                known.discard(agent.agent_id)


def archive_path(session_id: str) -> str:
    """Return the path of the lines of a collected session."""
    return f"{ARCHIVE}/{session_id}.jsonl"


def write_archives(files: FileSystem, ids: Ids, logs: dict[str, str]) -> int:
    """Write the lines of logs (paths by session id) into the archive, durably.

    Returns the number of bytes. Raises ``StorageFull`` or ``OSError``.
    """
    make_durable_directory(files, ARCHIVE)
    archived = 0
    for session_id, path in logs.items():
        names = files.listdir(path.rpartition("/")[0])
        segments = [segment_path(path, number) for number in segments_in(names, path)]
        content = b"".join(read_whole(files, segment) for segment in segments)
        # A boot sweeps temporaries in the root; the archive may have any number of files.
        replace_file(files, archive_path(session_id), content, ids, scratch="")
        archived += len(content)
    files.sync_dir(ARCHIVE)
    return archived
