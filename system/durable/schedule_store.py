"""The schedules of a root, and the triggers of their next occurrences.

A living schedule that is not paused has one PENDING trigger: its next occurrence. The
transaction that claims it inserts the following one, so after a crash at any point a schedule
neither stops nor runs an occurrence twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from system.durable.dedup import DEDUP
from system.durable.emitter import (
    CheckedTrigger,
    Emitter,
    check_recipient,
    checked_description,
    checked_payload,
)
from system.durable.errors import BadSchedule, RowDamaged, UnknownSchedule
from system.durable.producers import ONE_TIME, RECURRING, priority_of
from system.durable.recurrence import Recurrence, ScheduleKind, recurrence_of
from system.durable.schedule import (
    SCHEDULES,
    CatchUp,
    Occurrence,
    Schedule,
    Scheduled,
    ScheduleSpec,
    schedule_id_of,
)
from system.durable.seconds import SECOND_NS, YEAR_10000, seconds_of
from system.durable.state import Transaction
from system.durable.trigger import (
    NOT_DONE,
    SESSION_INDEX,
    TRIGGERS,
    Sessions,
    Trigger,
    TriggerStatus,
)
from system.foreign import reason_of, shown
from system.ports import Ids, Zones
from system.storage.codec import canonical

LATE_S: Final = 120
"""The seconds of lateness beyond which an occurrence counts as missed."""
MOST_DEAD: Final = 5
"""The number of DEAD occurrences in a row that pauses a schedule."""

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class ScheduleStore:
    """Creates, changes and ends schedules; ``emitter`` takes their triggers."""

    def __init__(self, ids: Ids, zones: Zones, sessions: Sessions, emitter: Emitter) -> None:
        self._ids = ids
        self._zones = zones
        self._sessions = sessions
        self._emitter = emitter

    def create(
        self, transaction: Transaction, spec: ScheduleSpec, schedule_id: str | None = None
    ) -> Scheduled:
        """Create a schedule and emit its first occurrence; if the id is taken, change nothing.

        Raises ``BadSchedule``, ``BadTrigger``, ``NoRecipient``, ``NotPlainJson`` or
        ``PayloadTooLarge``.
        """
        if schedule_id is None:
            schedule_id = self._ids.uuid_hex()
        elif type(schedule_id) is not str or not _ID.fullmatch(schedule_id):
            raise BadSchedule(
                f"schedule_id={shown(schedule_id, 100)} is not an id;"
                " give 1 to 100 ASCII letters, digits and _ . -"
            )
        elif _is_taken(transaction, schedule_id):
            return Scheduled(schedule_id, created=False)
        schedule = self._checked(transaction, spec, schedule_id)
        nominal = self._first(transaction, schedule)
        SCHEDULES.insert(transaction, schedule)
        self._arm(transaction, schedule, nominal)
        return Scheduled(schedule_id, created=True)

    def change(self, transaction: Transaction, schedule_id: str, spec: ScheduleSpec) -> None:
        """Change the times or the content of a schedule; its next occurrence is emitted anew.

        A paused schedule is resumed. Raises as ``create``, and ``UnknownSchedule``.
        """
        old = self.living(transaction, schedule_id)
        new = self._checked(transaction, spec, schedule_id)._replace(
            last_nominal=old.last_nominal, created_at=old.created_at
        )
        self._disarm(transaction, old)
        self._rearm(transaction, new)

    def delete(self, transaction: Transaction, schedule_id: str) -> None:
        """End a schedule; its PENDING triggers are superseded. Raises ``UnknownSchedule``."""
        schedule = self.living(transaction, schedule_id)
        self._end(transaction, schedule.session_id, [schedule])

    def delete_own(self, transaction: Transaction, schedule_id: str, session_id: str) -> None:
        """End a schedule of ``session_id``; raises ``UnknownSchedule``, or ``BadSchedule``."""
        if self.living(transaction, schedule_id).session_id != session_id:
            raise BadSchedule(f"schedule {schedule_id!r:.100} belongs to another session")
        self.delete(transaction, schedule_id)

    def pause(self, transaction: Transaction, schedule_id: str) -> None:
        """Stop firing until ``resume``; raises ``UnknownSchedule``."""
        schedule = self.living(transaction, schedule_id)
        if not schedule.paused:
            self._pause(transaction, schedule, "by a person")

    def resume(self, transaction: Transaction, schedule_id: str) -> None:
        """Fire again from the next occurrence on; raises ``UnknownSchedule``."""
        schedule = self.living(transaction, schedule_id)
        if schedule.paused:
            running = schedule._replace(paused=False, dead_in_row=0, reason=None)
            self._rearm(transaction, running)

    def living(self, transaction: Transaction, schedule_id: str) -> Schedule:
        """Return a schedule that has not ended; raises ``UnknownSchedule`` or ``RowDamaged``."""
        schedule = SCHEDULES.read(transaction, schedule_id)
        if schedule is None or schedule.ended_at is not None:
            raise UnknownSchedule(schedule_id)
        return schedule

    def all_living(self, transaction: Transaction) -> list[Schedule | RowDamaged]:
        """Return the schedules that have not ended, oldest first; damaged rows as errors."""
        rows = SCHEDULES.select(transaction, "ended_at IS NULL ORDER BY rowid")
        return [schedule for _, schedule in rows]

    # -- occurrences ---------------------------------------------------------------------

    def follow(self, transaction: Transaction, trigger: Trigger) -> Occurrence:
        """Emit the occurrence after one that is being claimed; return how this one is to be run.

        A trigger is run unchanged if it has no schedule, or is not the next occurrence of it: the
        next one was emitted before, or the schedule has the id of one that was removed. Raises
        ``BadSchedule``, and changes nothing, if the times of the schedule cannot be computed any
        more, because its zone is not known; ``give_up`` must follow.
        """
        schedule = self._of(transaction, trigger)
        nominal = round(trigger.fire_at)
        if schedule is None or schedule.next_fire_at != nominal:
            return Occurrence(trigger.missed, skipped=False)
        now, late_ns = transaction.now_ns // SECOND_NS, transaction.now_ns - nominal * SECOND_NS
        skipped = schedule.catch_up is CatchUp.SKIP and late_ns > LATE_S * SECOND_NS
        if schedule.is_once:
            ended = schedule._replace(last_nominal=nominal, next_fire_at=None)
            self._update(transaction, _ended(ended, transaction.now))
            return Occurrence(0, skipped)
        times, missed, last = self._times(schedule), 0, nominal
        # From now on ``last_nominal`` refuses the occurrence.
        DEDUP.delete(transaction, schedule.key_of(nominal))
        if skipped:
            last = max(nominal, times.last((transaction.now_ns - 1) // SECOND_NS - LATE_S))
        elif schedule.catch_up is not CatchUp.ALL:
            missed, last = times.missed(nominal, now), max(nominal, times.last(now))
        followed = schedule._replace(last_nominal=last)
        self._arm(transaction, followed, times.after(last))
        return Occurrence(missed, skipped)

    def give_up(self, transaction: Transaction, trigger: Trigger, reason: str) -> None:
        """Pause the schedule of an occurrence that has no next one."""
        schedule = self._of(transaction, trigger)
        assert schedule is not None
        passed = schedule._replace(last_nominal=round(trigger.fire_at))
        self._pause(transaction, passed, reason)

    def handled(self, transaction: Transaction, trigger: Trigger) -> None:
        """Record that an occurrence was handled."""
        schedule = self._of(transaction, trigger)
        if schedule is not None and schedule.dead_in_row:
            self._update(transaction, schedule._replace(dead_in_row=0))

    def stopped(self, transaction: Transaction, trigger: Trigger) -> None:
        """Record that an occurrence is DEAD or FAILED; the fifth in a row pauses the schedule."""
        schedule = self._of(transaction, trigger)
        if schedule is None:
            return
        counted = schedule._replace(dead_in_row=schedule.dead_in_row + 1)
        if counted.dead_in_row >= MOST_DEAD:
            self._pause(transaction, counted, f"{MOST_DEAD} occurrences in a row are DEAD")
        else:
            self._update(transaction, counted)

    def end_session(self, transaction: Transaction, session_id: str) -> None:
        """End the schedules of a session that has ended."""
        rows = SCHEDULES.select(transaction, "session_id=? AND ended_at IS NULL", (session_id,))
        schedules = [each for _, each in rows if not isinstance(each, RowDamaged)]
        self._end(transaction, session_id, schedules)

    # -- shared --------------------------------------------------------------------------

    def _checked(self, transaction: Transaction, spec: ScheduleSpec, schedule_id: str) -> Schedule:
        schedule = _schedule(spec, schedule_id, transaction.now)
        check_recipient(self._sessions, spec.session_id, routable=True)
        return schedule

    def _times(self, schedule: Schedule) -> Recurrence:
        return _times(schedule, self._zones)

    def _first(self, transaction: Transaction, schedule: Schedule) -> int:
        return _first(schedule, self._zones, transaction.now_ns)

    def _arm(self, transaction: Transaction, schedule: Schedule, nominal: int | None) -> None:
        """Write the schedule, and emit its occurrence at ``nominal``; None ends the schedule."""
        if nominal is None:
            self._update(transaction, _ended(schedule, transaction.now))
            return
        producer = ONE_TIME if schedule.is_once else RECURRING
        checked = CheckedTrigger(
            producer, producer.source, schedule.payload_json, schedule.description,
            schedule.session_id, float(nominal), schedule.key_of(nominal), schedule.priority,
        )  # fmt: skip
        self._emitter.insert(transaction, checked)
        self._update(transaction, schedule._replace(next_fire_at=nominal))

    def _rearm(self, transaction: Transaction, schedule: Schedule) -> None:
        """Emit the first occurrence from now on; raises ``RowDamaged`` if its key is damaged."""
        nominal = self._first(transaction, schedule)
        DEDUP.read(transaction, schedule.key_of(nominal))
        self._arm(transaction, schedule, nominal)

    def _disarm(self, transaction: Transaction, schedule: Schedule) -> None:
        """Supersede the next occurrence, and free its key: it was never run.

        A damaged key or trigger stays as it is.
        """
        if schedule.next_fire_at is None:
            return
        key = schedule.key_of(schedule.next_fire_at)
        try:
            found = DEDUP.read(transaction, key)
            trigger = None if found is None else TRIGGERS.read(transaction, found.trigger_id)
            DEDUP.delete(transaction, key)
        except RowDamaged:
            waiting = self._waiting(transaction, schedule.session_id)
            trigger = next((each for each in waiting if each.dedup_key == key), None)
        if trigger is not None and trigger.status is TriggerStatus.PENDING:
            self._emitter.supersede(transaction, trigger, None)

    def _pause(self, transaction: Transaction, schedule: Schedule, reason: str) -> None:
        self._disarm(transaction, schedule)
        self._update(transaction, schedule._replace(paused=True, next_fire_at=None, reason=reason))

    def _end(
        self, transaction: Transaction, session_id: str | None, schedules: Sequence[Schedule]
    ) -> None:
        """End schedules of one session, whose PENDING triggers are read once."""
        ids = {schedule.schedule_id for schedule in schedules}
        for schedule in schedules:
            self._disarm(transaction, schedule)
            self._update(transaction, _ended(schedule, transaction.now))
        for trigger in self._waiting(transaction, session_id) if ids else ():
            if schedule_id_of(trigger.dedup_key) in ids:
                self._emitter.supersede(transaction, trigger, None)

    def _waiting(self, transaction: Transaction, session_id: str | None) -> list[Trigger]:
        """Return the PENDING triggers that may be occurrences of a schedule of a session.

        Besides the next occurrence, some may be PENDING again after a claim. Those may wait in any
        session: they were routed, or the schedule has been given to another session since then.
        """
        rows = TRIGGERS.select(
            transaction,
            f"{NOT_DONE} AND status='PENDING' AND (fence>0 OR session_id IS ?) ORDER BY rowid",
            (session_id,), SESSION_INDEX,
        )  # fmt: skip
        return [trigger for _, trigger in rows if not isinstance(trigger, RowDamaged)]

    def _of(self, transaction: Transaction, trigger: Trigger) -> Schedule | None:
        """Return the living schedule of a trigger; None also if its row is damaged."""
        schedule_id = schedule_id_of(trigger.dedup_key)
        if schedule_id is None:
            return None
        try:
            schedule = SCHEDULES.read(transaction, schedule_id)
        except RowDamaged:
            return None
        return schedule if schedule is not None and schedule.ended_at is None else None

    def _update(self, transaction: Transaction, schedule: Schedule) -> None:
        SCHEDULES.update(transaction, schedule._replace(updated_at=transaction.now))


def _is_taken(transaction: Transaction, schedule_id: str) -> bool:
    """Return whether there is a schedule with this id, or was one of kind ``once`` that has run."""
    if SCHEDULES.read(transaction, schedule_id) is not None:
        return True
    return DEDUP.read(transaction, f"{ONE_TIME.prefix}:{schedule_id}") is not None


def check_content(spec: ScheduleSpec) -> None:
    """Raise the errors of ``create`` that depend on the specification alone."""
    _schedule(spec, "", 0.0)


def check_schedule(spec: ScheduleSpec, zones: Zones, now_ns: int) -> None:
    """Raise the errors of ``create`` that do not depend on the session."""
    _first(_schedule(spec, "", seconds_of(now_ns)), zones, now_ns)


def _schedule(spec: ScheduleSpec, schedule_id: str, now: float) -> Schedule:
    """Return a new schedule; raises as ``create``."""
    if not isinstance(spec, ScheduleSpec):
        raise BadSchedule(f"the schedule {shown(spec, 100)} is not a ScheduleSpec")
    try:
        kind, catch_up = ScheduleKind(spec.kind), CatchUp(spec.catch_up)
    except ValueError as bad:
        raise BadSchedule(reason_of(bad)) from None
    if type(spec.spec) is not str or type(spec.zone) is not str:
        raise BadSchedule(
            f"spec={shown(spec.spec, 40)} and zone={shown(spec.zone, 40)} are not both texts"
        )
    # ``datetime`` accepts any character between date and time, also a lone surrogate.
    canonical([spec.spec, spec.zone])
    producer = ONE_TIME if kind is ScheduleKind.ONCE else RECURRING
    assert producer.routable
    return Schedule(
        schedule_id, kind, spec.spec, spec.zone, spec.session_id,
        priority_of(producer, spec.priority), checked_description(spec.description),
        checked_payload(spec.payload), catch_up, last_nominal=None, next_fire_at=None,
        paused=False, dead_in_row=0, reason=None, ended_at=None, created_at=now, updated_at=now,
    )  # fmt: skip


def _times(schedule: Schedule, zones: Zones) -> Recurrence:
    anchor = round(schedule.created_at)
    return recurrence_of(schedule.kind, schedule.spec, schedule.zone, anchor, zones)


def _first(schedule: Schedule, zones: Zones, now_ns: int) -> int:
    """Return the first occurrence; that of a schedule of kind ``once`` may have just passed."""
    after = -1 if schedule.is_once else max(now_ns // SECOND_NS, schedule.last_nominal or 0)
    nominal = _times(schedule, zones).after(after)
    if nominal is None or not (schedule.last_nominal or 0) < nominal < YEAR_10000:
        raise BadSchedule(f"spec={schedule.spec!r:.100} has no time to come")
    return nominal


def _ended(schedule: Schedule, now: float) -> Schedule:
    return schedule._replace(next_fire_at=None, ended_at=now, payload_json="null", description=None)
