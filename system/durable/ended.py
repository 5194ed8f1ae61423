"""The agents that have ended and whose files are gone: one small row each, kept for ever.

A row is looked up by its keys and never read with the others, so that the boot of a root costs
the same however many agents have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from system.durable.applied import APPLIED
from system.durable.state import Transaction
from system.durable.table import Table

if TYPE_CHECKING:
    from system.durable.state import SqlRow


@dataclass(frozen=True, slots=True)
class Ended:
    """A row of ``ended``: ``how`` an agent ended, and the path of its ``archive``, if it has one.

    ``ended_at`` is a time in seconds since 1970. A root has no parent, a child no request.
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


def insert_ended(transaction: Transaction, rows: list[Ended]) -> None:
    """Write the rows, and remove the other rows about these sessions."""
    for row in rows:
        ENDED.insert(transaction, row)
        APPLIED.delete(transaction, row.session_id)
        transaction.execute("DELETE FROM known_ids WHERE session_id=?", (row.session_id,))


def ended_session(transaction: Transaction, session_id: str) -> Ended | None:
    """Return the row of a session, or None; raises ``RowDamaged``."""
    rows = transaction.execute("SELECT agent_id FROM ended WHERE session_id=?", (session_id,))
    return _found(transaction, rows)


def ended_request(transaction: Transaction, request_id: str) -> Ended | None:
    """Return the row of the agent that was created for a request, or None; as above."""
    rows = transaction.execute("SELECT agent_id FROM ended WHERE request_id=?", (request_id,))
    return _found(transaction, rows)


def _found(transaction: Transaction, rows: list[SqlRow]) -> Ended | None:
    return ENDED.read(transaction, str(rows[0][0])) if rows else None
