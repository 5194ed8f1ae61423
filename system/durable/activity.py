"""Activities: irreversible actions, each with a row in the ledger before it is attempted.

An activity that is INTENT with ``attempts`` 0 was certainly never performed. With more attempts it
may have been: it is repeated with the same key if the provider performs each key once, and else
becomes UNCERTAIN, and a person decides. One that is FAILED was certainly not performed, unless a
person has decided so. The decision ``again`` begins anew: the attempts before it do not count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, cast

from system.durable.table import Table
from system.ports import Action, Json, JsonObject, Performed, SideEffectClass


class ActivityStatus(StrEnum):
    """The states of an activity."""

    INTENT = "INTENT"
    """It is to be performed, or under way."""
    DONE = "DONE"
    FAILED = "FAILED"
    """It was certainly not performed, or a person has decided so."""
    UNCERTAIN = "UNCERTAIN"
    """It may have been performed; a person decides."""


class Decision(StrEnum):
    """The answer of a person about an UNCERTAIN or FAILED activity."""

    PERFORMED = "performed"
    NOT_PERFORMED = "not-performed"
    AGAIN = "again"
    """Perform it, even if that makes it happen twice."""


class Activity(NamedTuple):
    """A row of ``activity_log``; times are seconds since 1970.

    ``decided_by`` names the person whose decision was recorded, also if it was ``again``.
    """

    idem_key: str
    task_id: str | None
    session_id: str | None
    turn_id: str | None
    action: str
    class_: SideEffectClass
    provider_dedup: bool
    arguments_json: str
    arguments_hash: str
    status: ActivityStatus
    attempts: int
    epoch: int | None
    provider_ref: str | None
    result_json: str | None
    reason: str | None
    decided_by: str | None
    created_at: float
    updated_at: float

    @property
    def arguments(self) -> JsonObject:
        """The arguments of the action."""
        return cast("JsonObject", json.loads(self.arguments_json))

    @property
    def result(self) -> Json:
        """The result of the action; None before it is DONE."""
        return None if self.result_json is None else cast("Json", json.loads(self.result_json))


ACTIVITIES: Final = Table("activity_log", Activity)


@dataclass(frozen=True, slots=True)
class Intent:
    """An activity to be performed, with its idempotency key."""

    key: str
    action: Action
    arguments: JsonObject
    session_id: str | None = None
    task_id: str | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The outcome of an attempt that has certainly not performed the action."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The outcome of an attempt that may have performed the action."""

    reason: str


Outcome: TypeAlias = Performed | Refused | Unknown
