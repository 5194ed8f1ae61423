"""The durable part of one agent: its event log and its session record.

Every line of the agent's log is written here, one append after the other, and applied to the
agent's history after that. Outbox entries of other agents for this log wait in a queue. All of
them are written with one barrier; if the disk refuses them, they stay in the queue.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from system.agents import event
from system.agents.creation import Creation, Event
from system.agents.history import COMPLETED, History
from system.agents.message import Message, MessageKind
from system.agents.queued_line import QueuedLine
from system.agents.session_data import exchanges_in
from system.agents.turn_complete import TurnComplete, TurnDraft
from system.errors import AgentStopped, LogStopped, RuntimeRefused, StorageError, UnknownAgent
from system.ports import Exchange, Host, Json, JsonObject
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.line import Line

T = TypeVar("T")


class AgentLog:
    """The log state of one agent.

    ``log`` is None until the agent is created, ``record`` while there is no session record.
    ``creation`` is set until the first lines are durable, ``queue`` has lines by key.
    ``dispatched`` is the watermark: the number of the line up to which all outboxes are known to be
    dispatched. ``stopped`` is the reason why nothing is written until the next boot, or is empty. A
    ``foreign_record`` is of a newer version and is never replaced. ``lock`` is held during an
    append.
    """

    def __init__(
        self,
        host: Host,
        store: SessionStore | None,
        agent_id: str,
        session_id: str,
        path: str,
        framing: Framing,
        history: History,
    ) -> None:
        self.history: Final = history
        self.log: EventLog | None = None
        self.record: SessionRecord | None = None
        self.creation: Creation | None = None
        self.queue: dict[str, QueuedLine] = {}
        self.dispatched = 0
        self.stopped = ""
        self.foreign_record = False
        self.lock: Final = Lock()
        self._saving: Final = Lock()
        # A replacement was refused: the file may have the old record or the new one.
        self._record_in_doubt = False
        # The ``turn.failed`` line of the last turn, if the disk has refused it.
        self._refused: list[Event] = []
        self._host = host
        self._store = store
        self._agent_id = agent_id
        self._session_id = session_id
        self._path = path
        self._framing = framing

    @property
    def is_behind(self) -> bool:
        """Whether lines, or the creation of the agent, wait to be written."""
        return bool(self.queue or self.creation)

    def stop(self, reason: str) -> None:
        """Write nothing more until the next boot; the first reason is kept."""
        assert reason
        self.stopped = self.stopped or reason

    # -- lines ---------------------------------------------------------------------------

    async def commit(self, make: Callable[[], Sequence[Event]]) -> None:
        """Append durably the lines that ``make`` returns, which is called with the lock held.

        Raises what ``make`` and ``EventLog.append_all`` raise, and ``AgentStopped``; after
        ``LogStopped`` the agent is stopped.
        """
        async with self.lock:
            events = make()
            self._open()
            if events:
                await self._append(events)

    async def receive(
        self, message: Message, is_known: Callable[[], Awaitable[bool]] | None
    ) -> None:
        """Append a message of the operator durably, unless the log has or had it.

        ``is_known`` returns whether ``state.db`` has its id; None means that the id is new.
        Raises ``UnknownAgent`` if the agent has ended, as ``is_known``, and as ``commit``.
        """
        async with self.lock:
            if self.history.ended:
                raise UnknownAgent(self._agent_id, "it has ended")
            self._open()
            if message.message_id in self.history.enqueued:
                return
            if is_known is not None and self.history.has_known_ids and await is_known():
                return
            await self._append([(event.MESSAGE_ENQUEUED, message.data())])

    async def commit_turn(
        self, draft: TurnDraft, turn_id: str, response: str, provider: str, identity: str
    ) -> TurnComplete:
        """Append the line of a turn durably; return it. Raises as ``commit``.

        After it, the lines that repeat parts of it are written without a barrier; if the disk
        refuses them, they are omitted.
        """
        async with self.lock:
            history = self.history
            permitted = history.open_turns[turn_id].permitted
            turn = draft.complete(
                turn_id, response, provider, identity, list(history.pending),
                permitted=permitted, dispatched=self.dispatched,
            )  # fmt: skip
            await self._write(
                [(event.TURN_COMPLETE, turn.data())],
                lambda lines: history.apply_turn(turn, lines[0].seq, lines[0].ts),
            )
            following: list[Event] = [
                (event.MESSAGE_DELIVERED, {"message_id": message_id})
                for message_id in turn.presented
            ]
            if turn.terminate:
                following.append(event.terminated(self._agent_id, COMPLETED))
            with suppress(OSError, StorageError):
                # They repeat parts of the turn, which is applied already.
                if following:
                    self._write_unsynced(following)
                history.termination_logged = turn.terminate
            return turn

    async def begin_turn(
        self, turn_id: str, prompt: str, presented: list[str], members: JsonObject
    ) -> None:
        """Append the start of a turn without a barrier; raises as ``commit``.

        ``members`` say how its execution is recorded, and which trigger it handles. A refused line
        about the turn before precedes it.
        """
        data: JsonObject = {
            "turn_id": turn_id, "prompt": prompt, "presented": list[Json](presented), **members,
        }  # fmt: skip
        async with self.lock:
            lines = self._write_unsynced([*self._refused, (event.TURN_START, data)])
            self._refused.clear()
            self.history.apply(lines)

    async def fail_turn(self, turn_id: str, reason: str, *, counts: bool) -> None:
        """Append without a barrier that a turn has failed.

        Its messages were presented if it ``counts``. A refused line is written with the start of
        the next turn; but if the log is stopped, the turn may have been committed.
        """
        uncounted: JsonObject = {} if counts else {"uncounted": True}
        data: JsonObject = {"turn_id": turn_id, "reason": reason, **uncounted}
        try:
            await self.append_unsynced([(event.TURN_FAILED, data)])
        except (OSError, StorageError, RuntimeRefused):
            if not self.stopped:
                self._refused = [(event.TURN_FAILED, data)]
                self.history.abandon_turn(turn_id, counts=counts)

    async def append_unsynced(self, events: Sequence[Event]) -> None:
        """Append lines without a barrier; raises as ``commit``."""
        async with self.lock:
            self.history.apply(self._write_unsynced(events))

    async def _append(self, events: Sequence[Event]) -> None:
        await self._write(events, self.history.apply)

    async def _write(
        self, events: Sequence[Event], apply: Callable[[Sequence[Line]], None]
    ) -> None:
        """Append lines durably and apply them, also if the caller is cancelled meanwhile."""
        log = self._open()
        lines: list[Line] = []
        try:
            await self._run(lambda: lines.extend(log.append_all(events)))
        finally:
            if lines:
                apply(lines)

    def _write_unsynced(self, events: Sequence[Event]) -> list[Line]:
        log = self._open()
        return self._stopping(lambda: log.append_unsynced(events))

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._host.workers.run(lambda: self._stopping(call))

    def _stopping(self, call: Callable[[], T]) -> T:
        """Return the result of a call of the log; after ``LogStopped`` the agent is stopped."""
        try:
            return call()
        except LogStopped as stopped:
            self.stop(stopped.reason)
            raise

    def _open(self) -> EventLog:
        if self.stopped or self.log is None:
            raise self._refusal()
        return self.log

    def _refusal(self) -> AgentStopped:
        data = self.history.agent
        name = data.name if data is not None else self._agent_id
        return AgentStopped(name, self.stopped or "it was never created")

    # -- the queue -----------------------------------------------------------------------

    def enqueue(self, line: QueuedLine | Message) -> bool:
        """Queue a line, or that of a message, unless the log has it; return whether lines wait."""
        key = line.message_id if isinstance(line, Message) else line.key
        history = self.history
        if key not in history.enqueued and key not in history.controls and key not in self.queue:
            if isinstance(line, Message):
                line = QueuedLine(key, event.MESSAGE_ENQUEUED, line.data())
            self.queue[key] = line
        return self.is_behind

    async def write_queue(self) -> None:
        """Append all queued lines durably; create the agent first if necessary.

        Raises as ``commit``, and ``UnknownAgent`` if the agent has ended; unwritten lines stay.
        """
        async with self.lock:
            if self.history.ended:
                raise UnknownAgent(self._agent_id, "it has ended")
            if self.stopped:
                raise self._refusal()
            # A turn that was committed while this call waited for the lock may have cancelled some.
            for line in [line for line in self.queue.values() if self._is_cancelled(line)]:
                del self.queue[line.key]
            due = list(self.queue.values())
            try:
                if self.creation is not None:
                    await self._create(self.creation, due)
                elif due:
                    await self._append([(line.event, line.data) for line in due])
            finally:
                # The lines may be in the log even if this call was cancelled.
                for key in [line.key for line in due if self.history.knows(line.key)]:
                    del self.queue[key]

    def _is_cancelled(self, line: QueuedLine) -> bool:
        """Whether it is a notice that the agent has cancelled."""
        is_notice = line.data.get("kind") == MessageKind.NOTICE
        return is_notice and line.key.removesuffix(".notice") not in self.history.subscriptions

    async def _create(self, creation: Creation, due: Sequence[QueuedLine]) -> None:
        record, history = creation.record, self.history
        if self.record is None:
            assert self._store is not None
            store = self._store
            await self._host.workers.run(lambda: store.add(record))
            self.record = record
        if self.log is None:
            self.log = log = await self._host.workers.run(self._open_log)
            # Lines of an interrupted creation.
            history.apply(log.recovered)
            log.recovered = ()
        logged = (history.session is not None, history.agent is not None)
        lines = [line for line, known in zip(creation.lines, logged, strict=True) if not known]
        lines += [(line.event, line.data) for line in due if not history.knows(line.key)]
        if lines:
            await self._append(lines)
        self.creation = None

    def _open_log(self) -> EventLog:
        return EventLog.open(self._host, self._path, self._session_id, self._framing)

    # -- segments ------------------------------------------------------------------------

    @property
    def durable_seq(self) -> int:
        """The number of the last line known to be durable; 0 without a log."""
        return self.log.durable_seq if self.log is not None else 0

    def is_snapshot_due(self, most_lines: int) -> bool:
        """Whether more than ``most_lines`` lines follow the last snapshot."""
        return self.log is not None and not self.stopped and self.log.is_snapshot_due(most_lines)

    async def begin_segment(self, make: Callable[[], JsonObject]) -> None:
        """Begin a new segment with the snapshot that ``make`` returns; it is called under the lock.

        Raises what ``EventLog.begin_segment`` raises, and ``AgentStopped``.
        """
        async with self.lock:
            log, data, lines = self._open(), make(), list[Line]()
            try:
                await self._run(lambda: lines.append(log.begin_segment(data)))
            finally:
                self.history.apply(lines)
            self._refused.clear()

    async def remove_old_segments(self, before_ts: str) -> None:
        """Remove segments that are never read and that ended by ``before_ts``, if possible."""
        log = self.log
        if log is not None:
            with suppress(OSError):
                await self._host.workers.run(lambda: log.remove_old_segments(before_ts))

    async def conversation(self) -> list[Exchange]:
        """Return all completed turns; those before the last snapshot are read from the disk.

        Raises ``StorageError`` or ``OSError``.
        """
        log, exchanges = self.log, self.history.exchanges
        if log is None or len(exchanges) == self.history.turn_count:
            return exchanges
        earlier = await self._host.workers.run(lambda: list(exchanges_in(log.earlier_lines())))
        return [*earlier, *exchanges]

    # -- the record ----------------------------------------------------------------------

    async def save(self, state: SessionState, provider_state_blob: bytes) -> None:
        """Replace the record durably by one in ``state``, unless it is known to be the same.

        Raises ``IllegalTransition``, ``StorageFull`` or ``OSError``.
        """
        async with self._saving:
            before, store, data = self.record, self._store, self.history.session
            assert store is not None
            if before is None:
                if self.foreign_record or data is None:
                    return
                # The disk has refused it so far.
                after = SessionRecord(
                    self._session_id, data.provider, data.model, state, provider_state_blob
                )
            elif (before.state, before.provider_state_blob) == (state, provider_state_blob):
                if not self._record_in_doubt:
                    return
                after = before
            else:
                after = before.moved_to(state, provider_state_blob)
                if before.state is not state:
                    after.check_follows(before, store.path_of(self._session_id))
            self._record_in_doubt = True
            await self._host.workers.run(lambda: store.replace(after))
            self.record, self._record_in_doubt = after, False

    async def save_suspended(self) -> None:
        """Replace a record whose state is ACTIVE, or may be; raises as ``save``."""
        record = self.record
        if self._record_in_doubt or (record is not None and record.state is SessionState.ACTIVE):
            blob = record.provider_state_blob if record is not None else b""
            await self.save(SessionState.SUSPENDED, blob)

    # -- the descriptor ------------------------------------------------------------------

    async def park(self) -> None:
        """Make all lines durable, and close the log's descriptor until the next append.

        A barrier that fails stops the agent. The log of an agent that has ended, or is
        stopped, is closed without a barrier: recovery writes lost unsynced lines again.
        """
        async with self.lock:
            log = self.log
            if log is None:
                return
            if self.stopped or self.history.ended:
                self.close()
                return
            with suppress(LogStopped):
                if log.is_durable:
                    self._stopping(log.park)
                else:
                    await self._run(log.park)

    async def sync_ended(self) -> None:
        """Make the last lines of an agent that has ended durable; raises ``OSError``.

        If the barrier fails, ``LogStopped`` is raised, and the next boot writes lost lines again.
        """
        if (log := self.log) is not None and not log.is_durable:
            self.close()
            await self._run(log.sync_closed)

    def close(self) -> None:
        """Close the log; a failure to do so loses nothing."""
        if self.log is not None:
            with suppress(OSError):
                self.log.close()
