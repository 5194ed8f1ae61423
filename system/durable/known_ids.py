"""Ids of messages that a snapshot has omitted, and that the operator may still use.

``session_id`` names the log of the message. The ids of messages from the operator are kept as long
as their recipient, those of acknowledged messages to the operator for thirty days.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from system.durable.errors import RowDamaged
from system.durable.producers import DAY_S
from system.durable.seconds import SECOND_NS, seconds_of
from system.durable.state import Transaction
from system.durable.table import Table, readable_texts

ACKNOWLEDGED_S: Final = 30 * DAY_S
"""The seconds for which the id of a message that the operator has acknowledged is kept."""
BATCH: Final = 500
"""The most rows that one call removes, so that no transaction is long."""


class KnownId(NamedTuple):
    """A row of ``known_ids``; ``kept_until`` is in seconds since 1970, None for no end."""

    session_id: str
    id: str
    kept_until: float | None


KNOWN_IDS: Final = Table("known_ids", KnownId, key_columns=2)


def keep_ids(
    transaction: Transaction, session_id: str, ids: Iterable[str], *, are_acknowledged: bool
) -> None:
    """Add ids of messages in the log of a session; ids that are in the table stay unchanged.

    Expired rows are removed, a limited number in each call.
    """
    until = seconds_of(transaction.now_ns + ACKNOWLEDGED_S * SECOND_NS)
    for each in ids:
        KNOWN_IDS.keep(transaction, KnownId(session_id, each, until if are_acknowledged else None))
    remove_expired_ids(transaction)


def is_known(transaction: Transaction, session_id: str, message_id: str) -> bool:
    """Return whether an id is in the table; also True if its row is damaged."""
    try:
        row = KNOWN_IDS.read(transaction, session_id, message_id)
    except RowDamaged:
        return True
    return row is not None and (row.kept_until is None or row.kept_until > transaction.now)


def remove_expired_ids(transaction: Transaction) -> int:
    """Remove up to ``BATCH`` expired rows; return how many. Damaged rows stay."""
    removed = 0
    for key in readable_texts(
        transaction,
        "SELECT CAST(session_id AS BLOB), CAST(id AS BLOB) FROM known_ids WHERE kept_until<=?"
        " LIMIT ?",
        (transaction.now, BATCH),
    ):
        try:
            KNOWN_IDS.read(transaction, *key)
        except RowDamaged:
            continue
        KNOWN_IDS.delete(transaction, *key)
        removed += 1
    return removed
