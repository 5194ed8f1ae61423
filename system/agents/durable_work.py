"""The durable work of a runtime: ``state.db``, its stores, and a queue of work that waits.

A root has no database until it is first needed: for a trigger, a reminder, a schedule, a task, an
activity, the row of a collected agent, or the ids that a snapshot omits. The outbox
of a durable line must not be lost when the disk is full, so it waits in a queue, which is applied
in order, in one transaction.
"""

from __future__ import annotations

from asyncio import CancelledError, Event, Lock
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from system.agents.message import USER, USER_SESSION
from system.durable.activity_runner import actions_by_name
from system.durable.back_off import MOST_ATTEMPTS
from system.durable.errors import FencedOff, RowDamaged, UnknownTrigger
from system.durable.known_ids import is_known
from system.durable.retention import may_have_left, remove_settled
from system.durable.seconds import SteadyClock, nanoseconds_of, reached_at
from system.durable.state import StateDatabase, Transaction
from system.durable.stores import Stores
from system.durable.trigger import SessionStatus
from system.errors import StorageError
from system.ports import Host

if TYPE_CHECKING:
    from system.agents.agent import Agent

TRANSACTIONS: Final = 250
"""Of this number of transactions one removes settled rows; each settles only a few."""

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], object]


class AgentSessions:
    """The sessions of the agents in memory; implements ``system.durable.trigger.Sessions``.

    ``sessions`` has the agents by session id; ``unread`` are the sessions that cannot be read in
    this lifetime.
    """

    def __init__(self, sessions: Mapping[str, Agent], *unread: AbstractSet[str]) -> None:
        self._sessions = sessions
        self._unread = unread

    def status(self, session_id: str) -> SessionStatus:
        """Return the state of a session; a collected one is unknown."""
        agent = self._sessions.get(session_id)
        if agent is not None and agent.agent_id != USER and agent.history.agent is not None:
            return SessionStatus.LIVING if agent.alive else SessionStatus.ENDED
        if any(session_id in unread for unread in self._unread):
            return SessionStatus.UNSERVED
        return SessionStatus.UNKNOWN

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        """Whether the log of a session (None: of the operator) has a message, or never will."""
        agent = self._sessions.get(USER_SESSION if session_id is None else session_id)
        if agent is None:
            return not any(session_id in unread for unread in self._unread)
        return not agent.alive or message_id in agent.history.enqueued

    def is_served(self, session_id: str | None) -> bool:
        """Whether turns of a session may run in this lifetime; None asks about the router."""
        if session_id is None:
            return True
        agent = self._sessions.get(session_id)
        return agent is not None and agent.alive and not agent.log.stopped


class DurableWork:
    """``state`` and ``stores`` are None while the root has no database.

    ``most_attempts`` is the number of claims after which a trigger is DEAD. ``create`` makes
    the database of a root that has none. ``on_change`` is called when the due time of a trigger
    may have changed, or work waits. ``clock`` is the time of all durable work. ``to_perform`` are
    the activities that the boot has found without an outcome. ``actions`` are those of the host
    by name; raises ``BadActivity`` if two have the same name.
    """

    def __init__(
        self, host: Host, sessions: AgentSessions, most_attempts: int = MOST_ATTEMPTS
    ) -> None:
        self.sessions: Final = sessions
        self.state: StateDatabase | None = None
        self.stores: Stores | None = None
        self.create: Callable[[], StateDatabase] | None = None
        self.on_change: Callable[[], None] | None = None
        self.to_perform: Sequence[str] = ()
        self.clock: Final = SteadyClock(host.clock)
        self.actions: Final = actions_by_name(host.effects)
        self._host = host
        self._most_attempts = most_attempts
        self._epoch = 0
        self._opening = Lock()
        self._writing: Event | None = None
        self._waiting: deque[Work] = deque()
        self._written = 0
        self._until_removal = TRANSACTIONS

    @property
    def is_behind(self) -> bool:
        """Whether work waits because the disk has refused it."""
        return bool(self._waiting) and (self.state is None or self.is_running)

    @property
    def is_running(self) -> bool:
        """Whether there is a database that accepts transactions."""
        return self.state is not None and self.state.stopped is None

    def begin(self, epoch: int) -> None:
        """Make the stores of boot ``epoch``, if the root has a database."""
        self._epoch = epoch
        if self.state is not None:
            self.stores = Stores(self._host, epoch, self.sessions, self._most_attempts)

    async def opened(self) -> Stores:
        """Return the stores of the root; its database is made if there is none.

        Raises as ``open_state``.
        """
        stores = self.stores
        return stores if stores is not None else await self._opened()

    async def _opened(self) -> Stores:
        async with self._opening:
            if self.stores is None:
                assert self.create is not None
                create, created = self.create, list[StateDatabase]()
                try:
                    await self._host.workers.run(lambda: created.append(create()))
                finally:
                    # Keep it even if this caller is cancelled: only one connection can be open.
                    if created:
                        self.state = created[0]
                        self.begin(self._epoch)
            assert self.stores is not None
            return self.stores

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of one transaction; raises as ``StateDatabase.run`` and ``opened``.

        Some transactions also remove settled rows, so that the number of these is bounded.
        """
        try:
            if self.state is None:
                await self.opened()
            assert self.state is not None
            self._until_removal -= 1
            result = await self.state.run(work if self._until_removal > 0 else self._removing(work))
        except (Exception, CancelledError):
            self.changed()
            raise
        self.changed()
        return result

    def _removing(self, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        """Return work that also removes settled rows; none that waits beside it does so too."""
        self._until_removal = TRANSACTIONS

        def done(transaction: Transaction) -> T:
            result, removed = work(transaction), remove_settled(transaction)
            transaction.after_commit(lambda: self._removed(removed))
            return result

        return done

    def _removed(self, rows: int) -> None:
        if may_have_left(rows):
            self._until_removal = 1

    async def knows_id(self, session_id: str, message_id: str) -> bool:
        """Return whether ``state.db`` has the id of a message that a snapshot has omitted.

        Raises as ``run``.
        """
        if self.state is None:
            return False
        return await self.run(lambda each: is_known(each, session_id, message_id))

    async def settle(self, work: Work) -> None:
        """Do ``work`` in a transaction, after all waiting work; it waits too if the disk is full.

        If the database has stopped, the next boot does it.
        """
        self._waiting.append(_leniently(work))
        with suppress(OSError, StorageError):
            await self.write_waiting()

    async def write_waiting(self) -> None:
        """Do all work that waits, in one transaction; raises as ``run``."""
        last = self._written + len(self._waiting)
        while self._written < last:
            if self._writing is not None:
                await self._writing.wait()
            else:
                await self._write_waiting()

    async def _write_waiting(self) -> None:
        batch, ended = tuple(self._waiting), Event()

        def all_of(transaction: Transaction) -> None:
            for work in batch:
                work(transaction)

        self._writing = ended
        try:
            await self.run(all_of)
            for _ in batch:
                self._waiting.popleft()
            self._written += len(batch)
        finally:
            self._writing = None
            ended.set()

    @property
    def has_reports(self) -> bool:
        """Whether there are reports whose messages were not passed to their logs yet."""
        return self.stores is not None and self.stores.reports.has_waiting

    # -- triggers that are due -----------------------------------------------------------

    def due_trigger(self, session_id: str | None) -> str | None:
        """Return the due trigger of a session that is next to be claimed, or None.

        ``session_id`` None means the triggers that are to be routed.
        """
        if self.stores is None or not self.is_running:
            return None
        return self.stores.queue.next_of(session_id, self._now())

    def take_due_sessions(self) -> list[str | None]:
        """Return the sessions of which a trigger has become due, as the queue does."""
        if self.stores is None or not self.is_running:
            return []
        return self.stores.queue.take_due_sessions(self._now())

    def due_in_ns(self) -> int | None:
        """Return the nanoseconds until the next future trigger becomes due, or None."""
        if self.stores is None or not self.is_running:
            return None
        due_at = self.stores.queue.next_due_at()
        if due_at is None:
            return None
        return max(0, nanoseconds_of(due_at) - self.clock.now_ns())

    def _now(self) -> float:
        return reached_at(self.clock.now_ns())

    def changed(self) -> None:
        """Call ``on_change``: the database has changed."""
        if self.on_change is not None:
            self.on_change()


def _leniently(work: Work) -> Work:
    """Return work that does nothing if there is a newer claim, or the row is damaged."""

    def done(transaction: Transaction) -> None:
        with suppress(FencedOff, UnknownTrigger, RowDamaged):
            transaction.part(lambda: work(transaction))

    return done
