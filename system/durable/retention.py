"""Removes settled rows that are no longer needed.

FAILED and DEAD triggers, FAILED and UNCERTAIN activities stay until a person has decided. A
key of scope ``forever`` is kept without its trigger, except the key of a reminder, whose id no log
names any more.
"""

from __future__ import annotations

from system.durable.activity import ACTIVITIES, Activity
from system.durable.dedup import DEDUP, outlive
from system.durable.errors import RowDamaged
from system.durable.known_ids import BATCH, remove_expired_ids
from system.durable.producers import DAY_S, REMINDER, WINDOW_S
from system.durable.schedule import SCHEDULES
from system.durable.seconds import SECOND_NS, seconds_of
from system.durable.state import Transaction
from system.durable.table import readable_texts
from system.durable.task import TASKS
from system.durable.trigger import TRIGGERS

_NEVER_REPEATED = (
    "(session_id IS NOT NULL OR EXISTS (SELECT 1 FROM tasks"
    " WHERE tasks.task_id=activity_log.task_id))"
    " AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id=activity_log.task_id"
    " AND tasks.status NOT IN ('DONE', 'FAILED', 'CANCELLED'))"
)
"""The condition of activities that no call repeats: their turn or their task has ended.

A program may repeat the call of its own activity at any time, unless the task has ended.
"""


def remove_settled(transaction: Transaction) -> int:
    """Remove triggers and activities that have been settled for a day, and unused keys.

    Schedules and tasks that have ended are removed after a week. The line that settled a row is
    recorded in ``applied``, so it is never applied again. Returns the number of removed
    rows; if the call ``may_have_left`` some, another call removes them. Damaged rows stay.
    """
    return (
        _remove_triggers(transaction)
        + _remove_keys(transaction)
        + _remove_activities(transaction)
        + _remove_ended(transaction)
        + remove_expired_ids(transaction)
    )


def may_have_left(removed: int) -> bool:
    """Return whether a call that has removed this number of rows may have left others."""
    return removed >= BATCH


def _ago(transaction: Transaction, seconds: int) -> float:
    return seconds_of(transaction.now_ns - seconds * SECOND_NS)


def _remove_triggers(transaction: Transaction) -> int:
    removed = 0
    for _, trigger in TRIGGERS.select(
        transaction, "status='DONE' AND updated_at<=? LIMIT ?", (_ago(transaction, DAY_S), BATCH),
        index="idx_triggers_settled",
    ):  # fmt: skip
        if isinstance(trigger, RowDamaged):
            continue
        outlive(transaction, trigger)
        TRIGGERS.delete(transaction, trigger.id)
        key = trigger.dedup_key
        if key is not None and key.startswith(f"{REMINDER.prefix}:"):
            DEDUP.delete(transaction, key)
        removed += 1
    return removed


def _remove_keys(transaction: Transaction) -> int:
    removed = 0
    query = "SELECT CAST(key AS BLOB) FROM dedup WHERE expires_at<=? LIMIT ?"
    for (key,) in readable_texts(transaction, query, (transaction.now, BATCH)):
        try:
            DEDUP.read(transaction, key)
        except RowDamaged:
            continue
        DEDUP.delete(transaction, key)
        removed += 1
    return removed


def _remove_activities(transaction: Transaction) -> int:
    removed = 0
    for _, activity in ACTIVITIES.select(
        transaction,
        "(status='DONE' OR status='FAILED' AND decided_by IS NOT NULL) AND updated_at<=?"
        f" AND {_NEVER_REPEATED} LIMIT ?",
        (_ago(transaction, DAY_S), BATCH),
    ):
        if isinstance(activity, RowDamaged) or _has_damaged_task(transaction, activity):
            continue
        ACTIVITIES.delete(transaction, activity.idem_key)
        removed += 1
    return removed


def _has_damaged_task(transaction: Transaction, activity: Activity) -> bool:
    """Return whether the row of an activity's task is damaged, so that its status is unknown."""
    try:
        if activity.task_id is not None:
            TASKS.read(transaction, activity.task_id)
    except RowDamaged:
        return True
    return False


def _remove_ended(transaction: Transaction) -> int:
    before, removed = _ago(transaction, WINDOW_S), 0
    for _, schedule in SCHEDULES.select(transaction, "ended_at<=? LIMIT ?", (before, BATCH)):
        if not isinstance(schedule, RowDamaged):
            SCHEDULES.delete(transaction, schedule.schedule_id)
            removed += 1
    for _, task in TASKS.select(
        transaction, "status IN ('DONE', 'FAILED', 'CANCELLED') AND updated_at<=? LIMIT ?",
        (before, BATCH),
    ):  # fmt: skip
        if not isinstance(task, RowDamaged):
            transaction.execute("DELETE FROM task_events WHERE task_id=?", (task.task_id,))
            TASKS.delete(transaction, task.task_id)
            removed += 1
    return removed
