"""Triggers: durable reasons for a turn of an agent at a given time.

A trigger is PENDING until the turn that handles it claims it. The line of that turn settles it:
then it is DONE. After a failed claim it is PENDING again with a pause, and after too many it is
DEAD. It is FAILED if no repetition can help.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, cast

from system.durable.state import Transaction
from system.durable.table import Table
from system.ports import Json


class TriggerSource(StrEnum):
    """The kinds of producer."""

    MESSAGE = "MESSAGE"
    SCHEDULED = "SCHEDULED"
    IMMEDIATE = "IMMEDIATE"
    MEMORY = "MEMORY"
    PROACTIVE = "PROACTIVE"
    RESUME = "RESUME"
    LIVING_UI = "LIVING_UI"
    SKILL_WORKFLOW = "SKILL_WORKFLOW"
    ONBOARDING = "ONBOARDING"
    SYSTEM = "SYSTEM"


class TriggerStatus(StrEnum):
    """The states of a trigger."""

    PENDING = "PENDING"
    """It waits for its time, or for a turn."""
    CLAIMED = "CLAIMED"
    """A turn handles it."""
    DONE = "DONE"
    """It is settled; its body is removed."""
    FAILED = "FAILED"
    """No repetition can help; a person decides."""
    DEAD = "DEAD"
    """It was claimed too often; a person decides."""


OPEN: Final = (TriggerStatus.PENDING, TriggerStatus.CLAIMED)
UNDECIDED: Final = (TriggerStatus.FAILED, TriggerStatus.DEAD)


class Resolution(StrEnum):
    """How a trigger became DONE."""

    HANDLED = "handled"
    SUPERSEDED = "superseded"
    SKIPPED = "skipped"
    """A missed occurrence of a schedule that skips them."""
    DISCARDED = "discarded"
    """By a person."""
    RETRIED = "retried"
    """A person has let it run again: it is not DONE."""


class Trigger(NamedTuple):
    """A row of ``triggers``; times are seconds since 1970.

    ``fire_at`` never changes. ``due_at`` is the later of ``fire_at`` and ``not_before``. ``fence``
    counts all claims, ``attempts`` those that count towards DEAD. ``missed`` is the number of
    further occurrences of its schedule that had passed at its first claim.
    """

    id: str
    source: TriggerSource
    dedup_key: str | None
    session_id: str | None
    fire_at: float
    not_before: float | None
    due_at: float
    priority: int
    description: str | None
    payload_json: str
    status: TriggerStatus
    attempts: int
    epoch: int | None
    fence: int
    lease_until: float | None
    missed: int
    routed: bool
    resolution: str | None
    superseded_by: str | None
    reason: str | None
    created_at: float
    updated_at: float

    @property
    def payload(self) -> Json:
        """The payload as JSON data; None when the trigger is DONE."""
        return cast("Json", json.loads(self.payload_json))


TRIGGERS: Final = Table("triggers", Trigger)
NOT_DONE: Final = "status<>'DONE'"
"""The condition of ``SESSION_INDEX``; it also finds rows whose status is damaged."""
SESSION_INDEX: Final = "idx_triggers_session"


def has_open_trigger(transaction: Transaction, session_id: str) -> bool:
    """Return whether a trigger of a session is PENDING or CLAIMED."""
    found = transaction.execute(
        "SELECT 1 FROM triggers WHERE session_id=? AND status<>'DONE'"
        " AND status IN ('PENDING', 'CLAIMED') LIMIT 1",
        (session_id,),
    )
    return bool(found)


class TriggerSpec(NamedTuple):
    """A trigger to be emitted.

    ``session_id`` is None for a trigger that is to be routed. ``fire_at`` is in seconds since
    1970, by default now. ``key`` is the dedup key in the form of its producer. ``priority`` is
    by default that of its producer.
    """

    source: str
    payload: Json = None
    description: str | None = None
    session_id: str | None = None
    fire_at: float | None = None
    key: str | None = None
    priority: int | None = None


class Emitted(NamedTuple):
    """The trigger that holds the key or id, and whether this call has created it."""

    trigger_id: str
    created: bool


class Claim(NamedTuple):
    """The claim of one turn on a trigger, until the trigger is settled, failed or given back.

    ``late_ns`` is the time from ``fire_at`` to the claim.
    """

    trigger: Trigger
    late_ns: int


class SessionStatus(StrEnum):
    """The states of a session, as far as its triggers are concerned."""

    LIVING = "living"
    UNSERVED = "unserved"
    """It is damaged or lost, and has not ended: its triggers wait."""
    ENDED = "ended"
    UNKNOWN = "unknown"


class Sessions(Protocol):
    """The sessions of the runtime."""

    def status(self, session_id: str) -> SessionStatus:
        """Return the state of a session."""
        ...

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        """Whether the log of a session has a message durably, or never will.

        ``session_id`` None means the log of the operator.
        """
        ...
