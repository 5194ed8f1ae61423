"""Dedup keys, in a table of their own: they outlive the triggers that they refuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from system.durable.errors import RowDamaged
from system.durable.producers import Producer, Scope
from system.durable.state import Transaction
from system.durable.table import Table
from system.durable.trigger import OPEN, TRIGGERS


@dataclass(frozen=True, slots=True)
class DedupKey:
    """A row of ``dedup``: a key, and the trigger that holds it.

    ``expires_at`` is set for keys of scope ``window``, in seconds since 1970.
    """

    key: str
    source: str
    scope: Scope
    expires_at: float | None
    trigger_id: str


DEDUP: Final = Table("dedup", DedupKey)


def holder_of(transaction: Transaction, key: str) -> str | None:
    """Return the id of the trigger that holds a key now, or None.

    A damaged trigger keeps its key. Raises ``RowDamaged`` if the key itself is damaged.
    """
    found = DEDUP.read(transaction, key)
    if found is None or (found.scope is Scope.ACTIVE and not is_open(transaction, found)):
        return None
    if found.expires_at is not None and found.expires_at <= transaction.now:
        return None
    return found.trigger_id


def is_open(transaction: Transaction, found: DedupKey) -> bool:
    """Return whether the trigger of a key is PENDING, CLAIMED or damaged."""
    try:
        trigger = TRIGGERS.read(transaction, found.trigger_id)
    except RowDamaged:
        return True
    return trigger is not None and trigger.status in OPEN


def take_key(transaction: Transaction, producer: Producer, key: str, trigger_id: str) -> None:
    """Give a key that nothing holds to a trigger."""
    window_s = producer.window_s(key)
    expires_at = None if window_s is None else transaction.now + window_s
    DEDUP.replace(
        transaction, DedupKey(key, producer.source, producer.scope, expires_at, trigger_id)
    )


def release_keys(transaction: Transaction, trigger_id: str) -> None:
    """Remove the keys of scope ``active`` that a trigger holds, because it is open no more.

    One that is damaged stays as it is.
    """
    for (key,) in transaction.execute(
        "SELECT key FROM dedup WHERE trigger_id=? AND scope='active'", (trigger_id,)
    ):
        if _read(transaction, str(key)) is not None:
            DEDUP.delete(transaction, str(key))


def pass_key(transaction: Transaction, key: str, trigger_id: str, successor_id: str) -> None:
    """Give a key of scope ``active`` to the trigger that supersedes its holder."""
    found = _read(transaction, key)
    if found is not None and found.scope is Scope.ACTIVE and found.trigger_id == trigger_id:
        DEDUP.update(transaction, replace(found, trigger_id=successor_id))


def _read(transaction: Transaction, key: str) -> DedupKey | None:
    """Return a key, or None if it is damaged or not taken."""
    try:
        return DEDUP.read(transaction, key)
    except RowDamaged:
        return None
