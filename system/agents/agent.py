"""One live agent: its log, its record, what it is waiting to be told.

Whatever is to stand in its log goes through here, one append after the other. Lines that
others owe it wait in ``owed`` until they are durable: all that are waiting go behind one
barrier, and what the disk refused is tried again.
"""

from __future__ import annotations

from asyncio import Lock, Task
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from system.agents import event
from system.agents.history import History
from system.agents.message import MessageKind
from system.agents.provider_state import ProviderState
from system.errors import AgentStopped, LogStopped, StorageError, UnknownAgent
from system.ports import Host, JsonObject
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from system.storage.event_log import EventLog
from system.storage.framing import Framing

Event = tuple[str, JsonObject]


@dataclass(frozen=True, slots=True)
class Owed:
    """A line that is due in somebody's log, once; ``key`` is the id that tells it is there."""

    key: str
    event: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Creation:
    """What an agent is made from, until its log exists."""

    record: SessionRecord
    lines: tuple[Event, Event]
    """``session.created`` and ``agent.created``."""


def new_creation(
    session_id: str, provider: str, model: str, identity: str, state: SessionState,
    agent_created: JsonObject,
) -> Creation:  # fmt: skip
    """Return what a session is made from."""
    blob = ProviderState(identity).encoded() if identity else b""
    session_created: JsonObject = {
        "provider": provider,
        "model": model,
        "system_prompt": agent_created["instructions"],
        "identity": identity,
    }
    lines = ((event.SESSION_CREATED, session_created), (event.AGENT_CREATED, agent_created))
    return Creation(SessionRecord(session_id, provider, model, state, blob), lines)


class Agent:
    """``log`` is None until the agent is born. ``stopped`` says why it takes nothing more,
    ``trouble`` why its last turn has not happened.

    ``owed`` are lines that are due in its log, by their key. ``turn`` is locked while a turn,
    or its end by the operator, is under way, ``lock`` during one append; ``running`` takes
    its turns, and is ``pausing`` between two attempts; ``retrying`` writes what the disk had
    refused, and ``awaits_retry`` before it. A ``foreign_record`` is left as it is: it is from a
    newer version.
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
        self.agent_id = agent_id
        self.session_id = session_id
        self.history = history
        self.record: SessionRecord | None = None
        self.log: EventLog | None = None
        self.creation: Creation | None = None
        self.owed: dict[str, Owed] = {}
        self.stopped = self.trouble = ""
        self.running: Task[None] | None = None
        self.retrying: Task[None] | None = None
        self.pausing = False
        self.awaits_retry = False
        self.foreign_record = False
        self.turn: Final = Lock()
        self.lock: Final = Lock()
        self._saving: Final = Lock()
        self._host = host
        self._store = store
        self._path = path
        self._framing = framing

    @property
    def alive(self) -> bool:
        """Whether it was created, and has not ended."""
        return not self.history.ended

    @property
    def runnable(self) -> bool:
        """Whether it has something to do, and may."""
        history = self.history
        return bool(
            history.pending
            and not history.ended
            and not self.stopped
            and (not history.gated or history.permits)
        )

    def name(self) -> str:
        """Return the agent's name; that of its id before it is born."""
        facts = self.history.agent
        return facts.name if facts is not None else self.agent_id

    # -- writing -------------------------------------------------------------------------

    async def commit(self, make: Callable[[], Sequence[Event]]) -> None:
        """Append the lines that ``make`` gives when it is this call's turn; then they are durable.

        Raises what ``EventLog.append_all`` raises; after ``LogStopped`` the agent is stopped.
        """
        async with self.lock:
            await self._append(make())

    async def note(self, events: Sequence[Event]) -> None:
        """Write lines without a barrier; raises as ``commit``."""
        async with self.lock:
            self._note(events)

    async def commit_and_note(
        self, make: Callable[[], Sequence[Event]], notes: Sequence[Event]
    ) -> None:
        """Append durably, then note; a note that the disk refuses is left out."""
        async with self.lock:
            await self._append(make())
            try:
                self._note(notes)
            except (OSError, StorageError):
                return

    async def tell(self) -> None:
        """Append everything that is owed, being born first if need be.

        Raises as ``commit``, and ``UnknownAgent`` if the agent has ended; what is owed then
        stays owed.
        """
        async with self.lock:
            if self.stopped:
                raise AgentStopped(self.name(), self.stopped)
            if self.history.ended:
                raise UnknownAgent(self.agent_id, "it has ended")
            # It may have been cancelled by the very turn whose commit it has waited for.
            for item in [item for item in self.owed.values() if self._is_cancelled(item)]:
                del self.owed[item.key]
            owed = list(self.owed.values())
            if self.creation is not None:
                await self._create(self.creation, owed)
            else:
                await self._append([(item.event, item.data) for item in owed])
            for item in owed:
                del self.owed[item.key]

    def _is_cancelled(self, item: Owed) -> bool:
        """Whether it is a reminder, or a notice, that nobody waits for any more."""
        match item.data.get("kind"):
            case MessageKind.REMINDER:
                return item.key not in self.history.reminders
            case MessageKind.NOTICE:
                return item.key.removesuffix(".notice") not in self.history.subscriptions
            case _:
                return False

    async def _create(self, creation: Creation, owed: Sequence[Owed]) -> None:
        record = creation.record
        if self.record is None:
            assert self._store is not None
            store = self._store
            await self._host.workers.run(lambda: store.add(record))
            self.record = record
        if self.log is None:
            self.log = log = await self._host.workers.run(self._open_log)
            # Lines of an interrupted creation.
            self.history = History.from_lines(log.recovered)
            log.recovered = ()
        history = self.history
        there = (history.session is not None, history.agent is not None)
        missing = [
            line for line, is_there in zip(creation.lines, there, strict=True) if not is_there
        ]
        due = [item for item in owed if not history.knows(item.key)]
        await self._append([*missing, *((item.event, item.data) for item in due)])
        self.creation = None

    def _open_log(self) -> EventLog:
        return EventLog.open(self._host, self._path, self.session_id, self._framing)

    async def _append(self, events: Sequence[Event]) -> None:
        log = self._open()
        if not events:
            return
        try:
            lines = await self._host.workers.run(lambda: log.append_all(events))
        except LogStopped as stopped:
            self.stopped = stopped.reason
            raise
        self.history.apply(lines)

    def _note(self, events: Sequence[Event]) -> None:
        try:
            self.history.apply(self._open().append_unsynced(events))
        except LogStopped as stopped:
            self.stopped = stopped.reason
            raise

    def _open(self) -> EventLog:
        if self.stopped or self.log is None:
            raise AgentStopped(self.name(), self.stopped or "it was never born")
        return self.log

    # -- the record ----------------------------------------------------------------------

    async def save(self, state: SessionState, provider_state_blob: bytes) -> None:
        """Bring the record to ``state``, durably; nothing is done if it says so already.

        Raises what ``SessionStore.save`` raises.
        """
        async with self._saving:
            before, store, facts = self.record, self._store, self.history.session
            assert store is not None
            if before is None:
                if self.foreign_record or facts is None:
                    return
                # The disk has refused it so far.
                after = SessionRecord(
                    self.session_id, facts.provider, facts.model, state, provider_state_blob
                )
            elif before.state is state and before.provider_state_blob == provider_state_blob:
                return
            else:
                after = before.moved_to(state, provider_state_blob)
                if before.state is not state:
                    after.check_follows(before, store.path_of(self.session_id))
            await self._host.workers.run(lambda: store.replace(after))
            self.record = after

    async def rest(self) -> None:
        """Let the log hold no descriptor until the next line; its notes are durable then.

        A barrier that fails is told in ``stopped``. The log of an agent that has ended, or is
        stopped, is closed as it is: nothing is built on its last notes, and recovery writes
        again what is lost of them.
        """
        async with self.lock:
            log = self.log
            if log is None:
                return
            if self.stopped or self.history.ended:
                with suppress(OSError):
                    log.close()
                return
            try:
                if log.is_durable:
                    log.park()
                else:
                    await self._host.workers.run(log.park)
            except LogStopped as stopped:
                self.stopped = stopped.reason

    def close(self) -> None:
        """Close the log."""
        if self.log is not None:
            self.log.close()
