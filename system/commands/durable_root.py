"""``state.db`` of a root that is not in use, for the commands on durable execution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from system.commands.offline import host_of
from system.durable.applied import APPLIED
from system.durable.dedup import DEDUP
from system.durable.ended import CONVERSATIONS, ENDED
from system.durable.errors import StateDamaged
from system.durable.known_ids import KNOWN_IDS
from system.durable.open_state import open_state, state_in_memory
from system.durable.state import STATE, StateDatabase, Transaction
from system.durable.stores import Stores
from system.durable.task import TASK_EVENTS
from system.durable.trigger import SessionStatus
from system.errors import StorageError
from system.host import database_in_memory
from system.ports import Host
from system.root import root_id_of, take_lock
from system.sessions.session import SessionState
from system.sessions.session_store import SessionStore

_KEPT: Final = (DEDUP, APPLIED, KNOWN_IDS, ENDED, CONVERSATIONS, TASK_EVENTS)
"""The tables that no other command reads."""


class UnreadSessions:
    """The sessions of a root whose logs are not read; implements ``Sessions``."""

    def __init__(self, host: Host) -> None:
        self._records = SessionStore(host)

    def status(self, session_id: str) -> SessionStatus:
        """Return that the session has ended if its record says so, else that it is unknown."""
        with suppress(OSError, StorageError):
            if self._records.load(session_id).state is SessionState.TERMINATED:
                return SessionStatus.ENDED
        return SessionStatus.UNKNOWN

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        """Return that no message is known to have arrived."""
        del session_id, message_id
        return False


@dataclass(frozen=True, slots=True)
class DurableRoot:
    """A locked root and its database; no epoch was begun, and nothing recovered."""

    host: Host
    state: StateDatabase
    stores: Stores


@contextmanager
def durable_root(root: str) -> Iterator[DurableRoot]:
    """Open the database of a root while the context lasts.

    A root in which nothing was scheduled yet has none; it gets none, and all tables are empty.

    Raises ``NotARoot``, ``RootInUse``, and the errors of the database.
    """
    host = host_of(root)
    lock = take_lock(host.files)
    try:
        names = host.files.listdir("")
        root_id = root_id_of(host.files)
        is_made = STATE in names or root_id is not None
        state = (
            open_state(host, root_id) if is_made else state_in_memory(host, database_in_memory())
        )
        try:
            yield DurableRoot(host, state, Stores(host, 0, UnreadSessions(host)))
        finally:
            state.close()
    finally:
        lock.close()


def shown_time(seconds: float | None) -> str:
    """Return a time as ISO 8601 in UTC, to the second; ``-`` for None.

    A time outside of the years 1 to 9999 is shown as seconds since 1970.
    """
    if seconds is None:
        return "-"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return f"{seconds:.0f}"


def damage(transaction: Transaction, stores: Stores) -> list[str]:
    """Return a sentence for each damaged row, except those of settled work, and each damaged index.

    Reads the whole database.
    """
    found = [
        *stores.triggers.load(transaction),
        *stores.activities.undecided(transaction),
        *stores.schedules.all_living(transaction),
        *stores.tasks.open_tasks(transaction),
        *stores.reports.load(transaction),
        *(each for table in _KEPT for each in table.damaged(transaction)),
    ]
    checks = [str(line) for (line,) in transaction.execute("PRAGMA integrity_check")]
    return [
        *(str(each) for each in found if isinstance(each, Exception)),
        *(f"{STATE}: {line}; {StateDamaged.cure}" for line in checks if line != "ok"),
    ]
