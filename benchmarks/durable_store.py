"""The store of triggers on a real directory, and its peer, a bare table of SQLite."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import apsw

from system.durable.emitter import checked_spec
from system.durable.open_state import open_state
from system.durable.seconds import SteadyClock
from system.durable.state import StateDatabase, Transaction
from system.durable.stores import Stores
from system.durable.trigger import SessionStatus, TriggerSpec
from system.host import real_host
from system.ports import Json
from system.storage.database_pragmas import DATABASE_PRAGMAS

T = TypeVar("T")

PAYLOAD: Final[Json] = {"text": "x" * 200}
FAR: Final = 3_000_000_000.0
"""A time that no measurement reaches, in seconds since 1970."""


class AllLiving:
    """Sessions that are all living; implements ``system.durable.trigger.Sessions``."""

    def status(self, session_id: str) -> SessionStatus:
        del session_id
        return SessionStatus.LIVING

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        del session_id, message_id
        return False


class DurableStore:
    """The database of the root ``directory``, open; no runtime has it open.

    A directory that is no root gets a database.
    """

    def __init__(self, directory: str) -> None:
        self.host = real_host(directory)
        marker = Path(directory, "root.json")
        root_id = json.loads(marker.read_bytes())["root_id"] if marker.exists() else None
        self.clock = SteadyClock(self.host.clock)
        self.state: StateDatabase = open_state(self.host, root_id, self.clock)
        self.stores = Stores(self.host, 1, AllLiving())

    def do(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of ``work`` in a separate transaction."""
        return self.state.transact(work)

    def fill(self, count: int, sessions: Sequence[str], fire_at: float | None) -> None:
        """Insert triggers in one transaction, for one session after the other."""
        emitter = self.stores.emitter
        specs = [
            checked_spec(TriggerSpec("IMMEDIATE", PAYLOAD, None, session_id, fire_at))
            for session_id in sessions
        ]

        def insert(transaction: Transaction) -> None:
            for number in range(count):
                emitter.insert(transaction, specs[number % len(specs)])

        self.do(insert)


class BareTable:
    """One table of SQLite with the columns of a trigger, and no index but its key."""

    def __init__(self, path: str, rows: int) -> None:
        self._connection = apsw.Connection(path)
        for pragma in DATABASE_PRAGMAS:
            self._connection.execute(pragma).fetchall()
        self._connection.execute(
            "CREATE TABLE bare (id TEXT NOT NULL PRIMARY KEY, source TEXT, session_id TEXT,"
            " fire_at REAL, payload_json TEXT, status TEXT, attempts INTEGER) STRICT"
        )
        self._ids: list[str] = []
        self._updates = 0
        with self._connection:
            for _ in range(rows):
                self._insert()

    def _insert(self) -> None:
        self._ids.append(uuid.uuid4().hex)
        self._connection.execute(
            "INSERT INTO bare VALUES (?, 'IMMEDIATE', 's', 1.0, ?, 'PENDING', 0)",
            (self._ids[-1], '{"text":"' + "x" * 200 + '"}'),
        )

    def insert(self) -> None:
        """Insert one row, durably."""
        with self._connection:
            self._insert()

    def update(self) -> None:
        """Change one row durably, a different one in each call."""
        self._updates += 1
        with self._connection:
            self._connection.execute(
                "UPDATE bare SET status='CLAIMED', attempts=attempts+1 WHERE id=?",
                (self._ids[-self._updates],),
            )

    def close(self) -> None:
        self._connection.close()
