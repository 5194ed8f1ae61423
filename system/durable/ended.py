"""The agents that were collected, whose files are removed: one small row each, kept for ever.

A row is looked up by its keys, and the table is never read as a whole, so the cost of a boot does
not depend on the number of collected agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from system.durable.applied import APPLIED
from system.durable.errors import RowDamaged
from system.durable.state import STATE, Transaction
from system.durable.table import Table, readable_texts
from system.durable.trigger import has_open_trigger


class Ended(NamedTuple):
    """A row of ``ended``: the reason of the end (``how``), and the path of the ``archive`` or None.

    ``ended_at`` is in seconds since 1970. A root agent has no parent, a child no request id.
    """

    agent_id: str
    session_id: str
    name: str
    parent_session_id: str | None
    request_id: str | None
    how: str
    ended_at: float
    archive: str | None


ENDED: Final = Table("ended", Ended)

BATCH: Final = 100
"""The most archives that one call returns."""


class EndedConversation(NamedTuple):
    """A row of ``conversations``: the provider may keep this one for a collected session."""

    provider: str
    identity: str
    session_id: str


CONVERSATIONS: Final = Table("conversations", EndedConversation, key_columns=2)


def insert_ended(
    transaction: Transaction, rows: Iterable[Ended], conversations: Iterable[EndedConversation] = ()
) -> None:
    """Write the rows, and remove the other rows about these sessions."""
    for conversation in conversations:
        CONVERSATIONS.keep(transaction, conversation)
    for row in rows:
        ENDED.insert(transaction, row)
        APPLIED.delete(transaction, row.session_id)
        transaction.execute("DELETE FROM known_ids WHERE session_id=?", (row.session_id,))


def ended_session(transaction: Transaction, session_id: str) -> Ended | None:
    """Return the row of a session, or None; raises ``RowDamaged``."""
    return _found(transaction, "SELECT agent_id FROM ended WHERE session_id=?", session_id)


def ended_request(transaction: Transaction, request_id: str) -> Ended | None:
    """Return the row of the agent that was created for a request, or None; as above."""
    return _found(transaction, "SELECT agent_id FROM ended WHERE request_id=?", request_id)


def has_open_work(transaction: Transaction, session_id: str) -> bool:
    """Return whether a session has an open trigger, task or activity."""
    if has_open_trigger(transaction, session_id):
        return True
    found = transaction.execute(
        "SELECT EXISTS (SELECT 1 FROM tasks WHERE session_id=?1 AND status IN"
        " ('ACTIVE', 'WAITING')) OR EXISTS (SELECT 1 FROM activity_log WHERE session_id=?1"
        " AND status='INTENT')",
        (session_id,),
    )
    return bool(found[0][0])


def is_ended_conversation(transaction: Transaction, provider: str, identity: str) -> bool:
    """Return whether a conversation belonged to a collected session; True for a damaged row."""
    try:
        return CONVERSATIONS.read(transaction, provider, identity) is not None
    except RowDamaged:
        return True


def oldest_archives(transaction: Transaction, before: float) -> list[Ended]:
    """Return rows with an archive, of sessions that ended by ``before``, the oldest first.

    At most ``BATCH`` rows are returned, without damaged ones.
    """
    rows = []
    for (agent_id,) in readable_texts(
        transaction,
        "SELECT CAST(agent_id AS BLOB) FROM ended WHERE archive IS NOT NULL AND ended_at<=?"
        " ORDER BY ended_at LIMIT ?",
        (before, BATCH),
    ):
        with suppress(RowDamaged):
            row = ENDED.read(transaction, agent_id)
            assert row is not None
            rows.append(row)
    return rows


def oldest_archive_at(transaction: Transaction) -> float | None:
    """Return the earliest end of a session that has an archive, or None."""
    found = transaction.execute("SELECT min(ended_at) FROM ended WHERE archive IS NOT NULL")
    (oldest,) = found[0]
    assert oldest is None or isinstance(oldest, float)
    return oldest


def forget_archives(transaction: Transaction, rows: Iterable[Ended]) -> None:
    """Record in rows that their archives are removed."""
    for row in rows:
        ENDED.update(transaction, row._replace(archive=None))


def _found(transaction: Transaction, query: str, value: str) -> Ended | None:
    try:
        rows = transaction.execute(query, (value,))
    except UnicodeDecodeError:
        raise RowDamaged(STATE, ENDED.name, value) from None
    return ENDED.read(transaction, str(rows[0][0])) if rows else None
