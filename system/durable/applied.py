"""For each session, the number of the last line whose outbox was applied to ``state.db``.

The transaction that applies the outbox of a line begins with ``record_applied``, so applying it
again changes nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from system.durable.errors import StateOutdated
from system.durable.state import STATE, Transaction
from system.durable.table import Table


class Applied(NamedTuple):
    """A row of ``applied``: the number of the last applied line of a session."""

    session_id: str
    seq: int


APPLIED: Final = Table("applied", Applied)


def applied_seq(transaction: Transaction, session_id: str) -> int:
    """Return the last applied line of a session, 0 if there is none; raises ``RowDamaged``."""
    row = APPLIED.read(transaction, session_id)
    return row.seq if row is not None else 0


def record_applied(transaction: Transaction, session_id: str, seq: int) -> bool:
    """Record that the outbox of line ``seq`` is applied; return False if it was so before.

    Raises ``RowDamaged``.
    """
    row = APPLIED.read(transaction, session_id)
    if row is None:
        APPLIED.insert(transaction, Applied(session_id, seq))
        return True
    if seq <= row.seq:
        return False
    APPLIED.update(transaction, Applied(session_id, seq))
    return True


def check_applied(transaction: Transaction, session_id: str, seq: int) -> None:
    """Raise ``StateOutdated`` if line ``seq``, whose log says that it is applied, is not."""
    found = applied_seq(transaction, session_id)
    if found < seq:
        raise StateOutdated(STATE, f"session={session_id} has applied seq={found}, its log {seq}")
