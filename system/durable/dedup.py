"""Dedup keys, in a table of their own, because they are kept longer than their triggers."""

from __future__ import annotations

from typing import Final, NamedTuple

from system.durable.errors import RowDamaged
from system.durable.producers import Producer, Scope, producer_of
from system.durable.state import Transaction
from system.durable.table import Table, readable_texts
from system.durable.trigger import OPEN, TRIGGERS, Trigger


class DedupKey(NamedTuple):
    """A row of ``dedup``: a key, and the trigger that holds it.

    ``expires_at``, in seconds since 1970, is set for keys of scope ``window`` that outlive their
    trigger, or were taken again. Without it the window begins when the trigger was emitted.
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
    return found.trigger_id if found is not None and _refuses(transaction, found) else None


def _refuses(transaction: Transaction, found: DedupKey) -> bool:
    if found.scope is Scope.FOREVER:
        return True
    expires_at = found.expires_at
    if expires_at is None:
        try:
            trigger = TRIGGERS.read(transaction, found.trigger_id)
        except RowDamaged:
            return True
        if trigger is None or found.scope is Scope.ACTIVE:
            return trigger is not None and trigger.status in OPEN
        expires_at = _window_end(trigger, found.key)
    return transaction.now < expires_at


def take_key(transaction: Transaction, producer: Producer, key: str, trigger_id: str) -> str | None:
    """Give a key to a new trigger; if another trigger holds it, return the id of that one.

    Raises ``RowDamaged`` if the key is damaged.
    """
    row = DedupKey(key, producer.source, producer.scope, None, trigger_id)
    if DEDUP.keep(transaction, row):
        return None
    holder = holder_of(transaction, key)
    if holder is None:
        DEDUP.replace(transaction, row)
    return holder


def give_key(transaction: Transaction, producer: Producer, key: str, trigger_id: str) -> None:
    """Give a free key to a trigger; its window begins now."""
    window_s = producer.window_s(key)
    expires_at = None if window_s is None else transaction.now + window_s
    DEDUP.replace(
        transaction, DedupKey(key, producer.source, producer.scope, expires_at, trigger_id)
    )


def outlive(transaction: Transaction, trigger: Trigger) -> None:
    """Keep the key of scope ``window`` of a trigger that is removed, as long as it refuses others.

    So only these are in the index of the times at which keys expire.
    """
    key = trigger.dedup_key
    found = None if key is None else _read(transaction, key)
    if found is None or found.trigger_id != trigger.id or found.scope is not Scope.WINDOW:
        return
    if found.expires_at is None:
        expires_at = _window_end(trigger, found.key)
        DEDUP.update(transaction, found._replace(expires_at=expires_at))


def release_keys(transaction: Transaction, trigger_id: str) -> None:
    """Remove the keys of scope ``active`` of a trigger that is no longer open.

    A damaged key stays.
    """
    query = "SELECT CAST(key AS BLOB) FROM dedup WHERE trigger_id=? AND scope='active'"
    for (key,) in readable_texts(transaction, query, (trigger_id,)):
        if _read(transaction, key) is not None:
            DEDUP.delete(transaction, key)


def pass_key(transaction: Transaction, key: str, trigger_id: str, successor_id: str) -> None:
    """Give a key of scope ``active`` to the trigger that supersedes its holder."""
    found = _read(transaction, key)
    if found is not None and found.scope is Scope.ACTIVE and found.trigger_id == trigger_id:
        DEDUP.update(transaction, found._replace(trigger_id=successor_id))


def _window_end(trigger: Trigger, key: str) -> float:
    """Return when a key of scope ``window`` stops refusing others, in seconds since 1970."""
    window_s = producer_of(trigger.source, key).window_s(key)
    assert window_s is not None
    return trigger.created_at + window_s


def _read(transaction: Transaction, key: str) -> DedupKey | None:
    """Return a key, or None if it is damaged or not taken."""
    try:
        return DEDUP.read(transaction, key)
    except RowDamaged:
        return None
