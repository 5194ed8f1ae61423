"""Emits triggers: every new trigger is checked here, compared with the keys, and inserted."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final, NamedTuple

from system.durable.dedup import give_key, holder_of, pass_key, release_keys, take_key
from system.durable.ended import ended_session
from system.durable.errors import BadTrigger, NoRecipient, NotAnOccurrence, RowDamaged
from system.durable.producers import (
    ONE_TIME,
    RECURRING,
    Producer,
    family_of,
    priority_of,
    producer_of,
    source_named,
)
from system.durable.seconds import YEAR_10000
from system.durable.state import Transaction
from system.durable.trigger import (
    NOT_DONE,
    TRIGGERS,
    Emitted,
    Resolution,
    Sessions,
    SessionStatus,
    Trigger,
    TriggerSource,
    TriggerSpec,
    TriggerStatus,
)
from system.durable.trigger_queue import TriggerQueue
from system.errors import PayloadTooLarge
from system.foreign import shown
from system.ports import Ids, Json
from system.storage.codec import canonical, is_plain_text

MOST_PAYLOAD_BYTES: Final = 1 << 20
MOST_DESCRIPTION_CHARACTERS: Final = 10_000

_ID: Final = re.compile(r"[\x21-\x7e]{1,200}")


class CheckedTrigger(NamedTuple):
    """A specification that can be inserted."""

    producer: Producer
    source: TriggerSource
    payload_json: str
    description: str | None
    session_id: str | None
    fire_at: float | None
    key: str | None
    priority: int


def checked_spec(spec: TriggerSpec) -> CheckedTrigger:
    """Return a specification with its producer.

    Raises ``BadTrigger``, ``KeyOfAnotherSource``, ``NotPlainJson`` or ``PayloadTooLarge``.
    """
    if not isinstance(spec, TriggerSpec):
        raise BadTrigger(f"the trigger {shown(spec, 100)} is not a TriggerSpec")
    source = source_named(spec.source)
    producer = producer_of(source, spec.key)
    return CheckedTrigger(
        producer,
        source,
        checked_payload(spec.payload),
        checked_description(spec.description),
        spec.session_id,
        None if spec.fire_at is None else checked_time(spec.fire_at),
        spec.key,
        priority_of(producer, spec.priority),
    )


def checked_payload(payload: Json) -> str:
    """Return a payload as canonical JSON; raises ``NotPlainJson`` or ``PayloadTooLarge``."""
    encoded = canonical(payload)
    if len(encoded) > MOST_PAYLOAD_BYTES:
        raise PayloadTooLarge(len(encoded), MOST_PAYLOAD_BYTES)
    return encoded.decode("ascii")


def checked_description(description: str | None) -> str | None:
    """Return a description; raises ``BadTrigger`` or ``NotPlainJson``."""
    if description is not None:
        if type(description) is not str:
            raise BadTrigger(f"the description {shown(description, 40)} is not a text")
        canonical(description)
        if len(description) > MOST_DESCRIPTION_CHARACTERS:
            raise BadTrigger(
                f"a description of characters={len(description)} is over the limit of"
                f" {MOST_DESCRIPTION_CHARACTERS}"
            )
    return description


def checked_time(moment: float) -> float:
    """Return a time in seconds since 1970; raises ``BadTrigger``."""
    is_number = type(moment) is int or (type(moment) is float and isfinite(moment))
    if not is_number:
        raise BadTrigger(
            f"the time {shown(moment, 40)} is not a finite number of seconds since 1970"
        )
    if not -YEAR_10000 < moment < YEAR_10000:
        raise BadTrigger(
            f"the time {shown(moment, 40)} is after the year 9999, or as long before 1970"
        )
    return float(moment)


class Emitter:
    """Emits triggers, and keeps ``queue`` up to date."""

    def __init__(self, ids: Ids, sessions: Sessions, queue: TriggerQueue) -> None:
        self._ids = ids
        self._sessions = sessions
        self._queue = queue

    def emit(
        self, transaction: Transaction, spec: TriggerSpec, trigger_id: str | None = None
    ) -> Emitted:
        """Insert a trigger, unless its key or ``trigger_id`` is taken.

        ``trigger_id`` is an id that the caller has chosen, so that it can repeat the call.
        Raises as ``checked_spec`` and ``emit_checked``.
        """
        return self.emit_checked(transaction, checked_spec(spec), trigger_id)

    def emit_checked(
        self, transaction: Transaction, checked: CheckedTrigger, trigger_id: str | None = None
    ) -> Emitted:
        """Insert a trigger as ``emit`` does.

        Raises ``BadTrigger`` if ``trigger_id`` is no id, ``NoRecipient``, ``NotAnOccurrence``, or
        ``RowDamaged`` if the key is damaged; then the transaction must be rolled back.
        """
        if trigger_id is not None and _is_there(transaction, trigger_id):
            return Emitted(trigger_id, created=False)
        new_id = trigger_id or self._fresh_id(transaction)
        holder = self._take_key(transaction, checked, new_id)
        if holder is not None:
            return Emitted(holder, created=False)
        check_recipient(self._sessions, checked.session_id, routable=checked.producer.routable)
        return self._insert(transaction, checked, new_id)

    def insert(self, transaction: Transaction, checked: CheckedTrigger) -> Emitted:
        """Insert a trigger whose key is free, and supersede those that it replaces."""
        new_id = self._fresh_id(transaction)
        if checked.key is not None:
            give_key(transaction, checked.producer, checked.key, new_id)
        return self._insert(transaction, checked, new_id)

    def _fresh_id(self, transaction: Transaction) -> str:
        """Return a fresh id of 32 hex digits: 48 bits of milliseconds since 1970, 80 random bits.

        That is the layout of a ULID. Ids in the order of time are inserted at one place of their
        index, whose page is in memory.
        """
        milliseconds = max(0, transaction.now_ns // 10**6)
        return milliseconds.to_bytes(6, "big").hex() + self._ids.random_hex(20)

    def _take_key(
        self, transaction: Transaction, checked: CheckedTrigger, trigger_id: str
    ) -> str | None:
        """Return the trigger that holds the key of another one, or None: it is taken, if any."""
        producer, key = checked.producer, checked.key
        if key is None:
            return None
        if producer not in (RECURRING, ONE_TIME):
            return take_key(transaction, producer, key, trigger_id)
        holder = holder_of(transaction, key)
        if holder is None:
            raise NotAnOccurrence(key)
        return holder

    def _insert(
        self, transaction: Transaction, checked: CheckedTrigger, trigger_id: str
    ) -> Emitted:
        now = transaction.now
        fire_at = now if checked.fire_at is None else checked.fire_at
        trigger = Trigger(
            id=trigger_id, source=checked.source, dedup_key=checked.key,
            session_id=checked.session_id, fire_at=fire_at, not_before=None, due_at=fire_at,
            priority=checked.priority, description=checked.description,
            payload_json=checked.payload_json, status=TriggerStatus.PENDING, attempts=0,
            epoch=None, fence=0, lease_until=None, missed=0, routed=False, resolution=None,
            superseded_by=None, reason=None, created_at=now, updated_at=now,
        )  # fmt: skip
        number = TRIGGERS.insert(transaction, trigger)
        if checked.key is not None and checked.producer.replaces:
            self._replace_older(transaction, trigger, checked.key)
        transaction.after_commit(lambda: self._queue.add(trigger, number))
        return Emitted(trigger.id, created=True)

    def with_recipient(self, transaction: Transaction, trigger: Trigger) -> Trigger:
        """Return a trigger that can wait; if its session has ended, a routed one is routed again.

        Raises ``NoRecipient`` if its session has ended, also if it was collected, or
        ``RowDamaged``.
        """
        session_id = trigger.session_id
        if session_id is None or not (
            self._sessions.status(session_id) is SessionStatus.ENDED
            or ended_session(transaction, session_id) is not None
        ):
            return trigger
        if not trigger.routed:
            raise NoRecipient(session_id, f"it is {SessionStatus.ENDED}")
        return trigger._replace(session_id=None, routed=False)

    def supersede(
        self, transaction: Transaction, trigger: Trigger, successor_id: str | None
    ) -> None:
        """Settle a PENDING trigger without running it; its row stays."""
        assert trigger.status is TriggerStatus.PENDING
        settled = done(trigger, Resolution.SUPERSEDED, transaction.now)
        TRIGGERS.update(transaction, settled._replace(superseded_by=successor_id))
        transaction.after_commit(lambda: self._queue.remove(trigger.id))

    def _replace_older(self, transaction: Transaction, trigger: Trigger, key: str) -> None:
        family = family_of(key)
        rows = TRIGGERS.select(
            transaction,
            f"session_id=? AND {NOT_DONE} AND status='PENDING' AND source=? ORDER BY rowid",
            (trigger.session_id, str(trigger.source)),
        )
        for _, older in rows:
            if isinstance(older, RowDamaged) or older.id == trigger.id:
                continue
            if older.dedup_key is not None and family_of(older.dedup_key) == family:
                self.supersede(transaction, older, trigger.id)
                pass_key(transaction, older.dedup_key, older.id, trigger.id)
                release_keys(transaction, older.id)


def done(trigger: Trigger, resolution: Resolution, now: float) -> Trigger:
    """Return a trigger as settled at ``now``, without its body."""
    return trigger._replace(
        status=TriggerStatus.DONE, resolution=resolution.value, payload_json="null",
        description=None, lease_until=None, updated_at=now,
    )  # fmt: skip


def check_recipient(sessions: Sessions, session_id: str | None, *, routable: bool) -> None:
    """Raise ``NoRecipient`` unless a session, or the router, can take a trigger."""
    if session_id is None:
        if not routable:
            raise NoRecipient(None, "triggers of this producer are not routed")
        return
    if not is_plain_text(session_id):
        raise NoRecipient(shown(session_id, 40), "it is not a text")
    status = sessions.status(session_id)
    if status in (SessionStatus.ENDED, SessionStatus.UNKNOWN):
        raise NoRecipient(session_id, f"it is {status}")


def _is_there(transaction: Transaction, trigger_id: str) -> bool:
    if type(trigger_id) is not str or not _ID.fullmatch(trigger_id):
        raise BadTrigger(
            f"trigger_id={shown(trigger_id, 100)} is not an id;"
            " give 1 to 200 visible ASCII characters"
        )
    try:
        return TRIGGERS.read(transaction, trigger_id) is not None
    except RowDamaged:
        return True
