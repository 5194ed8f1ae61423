"""Schedules: one-time and recurring producers of triggers."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from system.durable.producers import ONE_TIME, RECURRING
from system.durable.recurrence import ScheduleKind
from system.durable.table import Table
from system.ports import Json


class CatchUp(StrEnum):
    """The treatment of occurrences whose time passed during an outage."""

    LATEST = "latest"
    """One trigger is fired for all of them."""
    ALL = "all"
    """Each is fired."""
    SKIP = "skip"
    """As ``latest``, among those that are not more than 120 s late."""


class Schedule(NamedTuple):
    """A row of ``schedules``.

    ``last_nominal`` and ``next_fire_at`` are nominal times in whole seconds since 1970; the
    other times are seconds. ``last_nominal`` only grows: no occurrence up to it is fired again.
    ``dead_in_row`` counts the occurrences that have become DEAD one after the other.
    """

    schedule_id: str
    kind: ScheduleKind
    spec: str
    zone: str
    session_id: str | None
    priority: int
    description: str | None
    payload_json: str
    catch_up: CatchUp
    last_nominal: int | None
    next_fire_at: int | None
    paused: bool
    dead_in_row: int
    reason: str | None
    ended_at: float | None
    created_at: float
    updated_at: float

    @property
    def is_once(self) -> bool:
        """Whether it has one occurrence."""
        return self.kind is ScheduleKind.ONCE

    def key_of(self, nominal: int) -> str:
        """Return the dedup key of an occurrence."""
        if self.is_once:
            return f"{ONE_TIME.prefix}:{self.schedule_id}"
        return f"{RECURRING.prefix}:{self.schedule_id}:{nominal}"


SCHEDULES: Final = Table("schedules", Schedule)


class ScheduleSpec(NamedTuple):
    """The specification of a schedule; ``session_id`` is None if its triggers are to be routed."""

    kind: str
    spec: str
    zone: str = "UTC"
    session_id: str | None = None
    payload: Json = None
    description: str | None = None
    priority: int | None = None
    catch_up: str = CatchUp.LATEST


class Scheduled(NamedTuple):
    """A schedule, and whether this call has created it."""

    schedule_id: str
    created: bool


class Occurrence(NamedTuple):
    """An occurrence to be run, with the number of ``missed`` further ones, or to be skipped."""

    missed: int
    skipped: bool


def schedule_id_of(key: str | None) -> str | None:
    """Return the id of the schedule to which a dedup key belongs, or None."""
    prefix, _, parts = (key or "").partition(":")
    return parts.partition(":")[0] if prefix in (RECURRING.prefix, ONE_TIME.prefix) else None
