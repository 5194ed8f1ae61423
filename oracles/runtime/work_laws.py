"""The laws of ``state.db`` and the logs, whose lines say which rows it must have.

The outbox of a line is applied in one transaction, and ``applied`` has the number of the
last such line of each session. So at any time the rows show the outboxes of the lines up to that
number, and of no later line. A recovery applies every outbox, and every row that has become
FAILED, DEAD or UNCERTAIN is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from oracles.durable.rows import Row, Rows
from oracles.durable.violations import WrongOutcome
from oracles.runtime.log_records import MessageRecord, TaskRecord, TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import LostReport, LostTask, TornLine, UnsettledTrigger
from oracles.runtime.work_contents import (
    check_activity,
    check_emitted,
    check_reminder,
    check_schedule,
    is_task_of,
)
from oracles.violation import InvalidState, LostAck, Phantom

_FINAL: Final = ("DONE", "FAILED", "CANCELLED")
_OPEN: Final = ("PENDING", "CLAIMED")
_STOPPED: Final = ("FAILED", "DEAD")
DECIDED: Final = ("DONE", "FAILED", "UNCERTAIN")


def check_lines(
    snapshot: RootSnapshot, rows: Rows, ended: Collection[str], stopped_keys: Collection[str] = ()
) -> None:
    """Check a snapshot that is not older than ``rows``; applies at any time.

    ``ended`` are the keys of activities and the ids of triggers and schedules that were read as
    settled before: their rows may have been removed. ``stopped_keys`` are the keys of triggers
    that were read as FAILED or DEAD.
    """
    snapshot = _with_collected(snapshot, rows)
    triggers = {row["id"]: row for row in rows.triggers}
    handled = {key for state in snapshot.agents.values() for key in state.handled}
    for state in snapshot.judged:
        if state.session_id in snapshot.collected:
            continue
        applied = rows.applied.get(state.session_id, 0)
        turns = [turn for turn in state.turns.values() if turn.has_state_entries]
        gone = {*ended, *handled, *_settled_by(turns, applied)}
        _check_tasks(state, turns, applied, rows, stopped_keys)
        _check_activities(state, turns, applied, rows, ended)
        for turn in turns:
            if turn.seq <= applied:
                _check_applied(state, turn, triggers, rows, gone)
                _check_contents(state, turn, triggers, rows)
            else:
                _check_not_begun(turn, triggers, rows)


def _with_collected(snapshot: RootSnapshot, rows: Rows) -> RootSnapshot:
    """Return the snapshot with the collected sessions of ``rows``, which must have ended."""
    for state in snapshot.judged:
        if state.session_id in rows.ended and not state.ended:
            raise InvalidState("an agent was collected that has not ended", path=state.path)
    return snapshot.with_ended(rows.ended)


def _settled_by(turns: list[TurnRecord], applied: int) -> Iterator[str]:
    """Yield the own triggers and schedules that an agent has ended, which may have been removed."""
    for turn in turns:
        if turn.seq <= applied:
            yield from turn.cancelled
            yield from turn.unscheduled


def check_recovered(snapshot: RootSnapshot, rows: Rows) -> None:
    """Check the first snapshot after a recovery, before any turn runs."""
    snapshot = _with_collected(snapshot, rows)
    for state in snapshot.judged:
        last = max((turn.seq for turn in state.turns.values() if turn.has_state_entries), default=0)
        if state.session_id not in snapshot.collected:
            applied = rows.applied.get(state.session_id, 0)
            if applied < last:
                raise UnsettledTrigger(
                    "a recovery has not applied the outbox of a durable line",
                    path=state.path, seq=last, applied=applied,
                )  # fmt: skip
    sessions = {state.session_id for state in snapshot.judged}
    for row in rows.triggers:
        if row["status"] == "CLAIMED" and row["session_id"] in (None, *sessions):
            raise UnsettledTrigger("a recovery has left a claim", actual=row)
    for key, row in rows.activities.items():
        if row["status"] == "INTENT" and row["attempts"] and not row["provider_dedup"]:
            raise WrongOutcome(
                "a recovery permits the repetition of an action that may have happened",
                key=key,
                actual=row,
            )
    _check_resumed(snapshot, rows)


def check_reports(snapshot: RootSnapshot, rows: Rows, retried: Collection[str] = ()) -> None:
    """Check rows and logs of one moment, at which no report is on its way.

    ``retried`` are the triggers about which a person has decided, durably or in flight.
    """
    user, agents = snapshot.user, {s.session_id: s for s in snapshot.agents.values()}
    stopped = {row["id"]: row for row in rows.triggers if row["status"] in _STOPPED}
    for trigger_id, row in stopped.items():
        if not _reports(user, f"{trigger_id}.dead"):
            raise LostReport("a trigger has stopped, and USER has no report", actual=row)
    for key, row in rows.activities.items():
        if row["status"] == "UNCERTAIN" and not _reports(user, f"{key}.uncertain"):
            raise LostReport("an activity is uncertain, and USER has no report", actual=row)
        state = agents.get(row["session_id"] or "")
        if state is None or state.ended or state.session_id in snapshot.excused:
            continue
        _check_outcomes(state, user, key, row)
    # A reminder that has stopped can be cancelled.
    cancelled = {key for state in snapshot.agents.values() for key in state.cancelled}
    for key, message in user.enqueued.items():
        if ".dead" in key and message.payload["trigger_id"] not in {*stopped, *retried, *cancelled}:
            raise Phantom("a trigger was reported that has not stopped", message=message)


def _check_outcomes(state: SessionState, user: SessionState, key: str, row: Row) -> None:
    """Check the outcomes of an activity that its agent was given; the last one is in force."""
    outcomes = [*_reports(state, f"{key}.result"), *_reports(state, f"{key}.decided")]
    statuses = [message.payload["status"] for message in outcomes]
    if statuses.count("UNCERTAIN") > len(_reports(user, f"{key}.uncertain")):
        raise LostReport("an uncertain outcome was not reported to USER", key=key, actual=row)
    if row["status"] not in DECIDED:
        return
    if not statuses:
        raise LostReport("an activity is decided, and its agent has no outcome", actual=row)
    order = list(state.enqueued)
    last = max(outcomes, key=lambda message: order.index(message.message_id))
    if last.payload["status"] != row["status"]:
        raise WrongOutcome(
            "an agent was given another outcome than the ledger has", key=key, actual=row,
            message=last,
        )  # fmt: skip


def _reports(state: SessionState, message_id: str) -> list[MessageRecord]:
    """Return the messages with an id, or with a number behind it: those after a decision."""
    known = state.enqueued.items()
    return [
        message for key, message in known if key == message_id or key.startswith(f"{message_id}.")
    ]


def _check_tasks(
    state: SessionState, turns: list[TurnRecord], applied: int, rows: Rows,
    stopped_keys: Collection[str],
) -> None:  # fmt: skip
    lines: defaultdict[str, list[TaskRecord]] = defaultdict(list)
    for turn in turns:
        if turn.seq <= applied:
            for task in turn.tasks:
                lines[task.task_id].append(task)
    for task_id, row in rows.tasks.items():
        if row["session_id"] != state.session_id:
            continue
        events = rows.events.get(task_id, ())
        if task_id not in lines or not is_task_of(lines[task_id], row, events):
            raise TornLine(
                "a task differs from the lines that are applied",
                lines=lines.get(task_id), actual=row, events=events,
            )  # fmt: skip
        last = lines[task_id][-1]
        if row["status"] not in _statuses(state, last, stopped_keys):
            raise InvalidState("a task has another status", expected=last, actual=row)
    for task_id, (*_, last) in lines.items():
        if not (task_id in rows.tasks or last.status in _FINAL or state.ended):
            raise LostAck("a task is gone", path=state.path, expected=last)


def _statuses(
    state: SessionState, task: TaskRecord, stopped_keys: Collection[str]
) -> Iterator[str]:
    """Yield the statuses that a task may have."""
    yield task.status
    if task.status not in _FINAL and state.ended:
        yield "CANCELLED"
    if task.status == "ACTIVE" and f"resume:{task.task_id}" in stopped_keys:
        yield "BLOCKED"


def _check_activities(
    state: SessionState, turns: list[TurnRecord], applied: int, rows: Rows, ended: Collection[str]
) -> None:
    requested = {
        each.key: each for turn in turns if turn.seq <= applied for each in turn.activities
    }
    for key, each in requested.items():
        row = rows.activities.get(key)
        if row is None and key not in ended and not _is_reported_as_settled(state, key):
            raise LostAck("an activity of a line is not in the ledger", path=state.path, key=key)
        if row is not None:
            check_activity(each, row)
    for key, row in rows.activities.items():
        if row["session_id"] == state.session_id and key not in requested:
            raise TornLine("an activity is in the ledger before its line", actual=row)


def _is_reported_as_settled(state: SessionState, key: str) -> bool:
    """Return whether the agent's log has an outcome after which the row may be removed."""
    outcomes = [*_reports(state, f"{key}.result"), *_reports(state, f"{key}.decided")]
    return any(
        message.payload["status"] == "DONE"
        or (message.payload["status"] == "FAILED" and message.payload["decided_by"] is not None)
        for message in outcomes
    )


def _check_applied(
    state: SessionState, turn: TurnRecord, triggers: Mapping[str, Row], rows: Rows,
    gone: Collection[str],
) -> None:  # fmt: skip
    """Check the rows of a line whose outbox is applied."""
    evidence: dict[str, Any] = {"path": state.path, "turn": turn}
    handled = triggers.get(turn.trigger_id or "")
    if handled is not None and handled["status"] != "DONE":
        raise UnsettledTrigger("a line whose outbox is applied has an open trigger", **evidence)
    for key in turn.cancelled:
        if triggers.get(key, {}).get("status", "DONE") != "DONE":
            raise TornLine("a cancelled reminder may still come", key=key, **evidence)
    for key in _emitted(turn):
        if key not in triggers and key not in gone and not state.ended:
            raise LostAck("a trigger of a line is gone", key=key, **evidence)
    for schedule in turn.scheduled:
        may_have_ended = state.ended or schedule.kind == "once" or schedule.schedule_id in gone
        if schedule.schedule_id not in rows.schedules and not may_have_ended:
            raise LostAck("a schedule of a line is gone", schedule=schedule, **evidence)
    own = {each.schedule_id for other in state.turns.values() for each in other.scheduled}
    for key in turn.unscheduled:
        row = rows.schedules.get(key)
        if key in own and row is not None and row["ended_at"] is None:
            raise TornLine("a schedule continues although a line has ended it", key=key, **evidence)


def _check_contents(
    state: SessionState, turn: TurnRecord, triggers: Mapping[str, Row], rows: Rows
) -> None:
    """Check what the rows of a line contain."""
    for reminder in turn.reminders:
        if (row := triggers.get(reminder.reminder_id)) is not None:
            check_reminder(state.session_id, reminder, row)
    for emitted in turn.emitted:
        if (row := triggers.get(emitted.trigger_id)) is not None:
            check_emitted(state.session_id, emitted, row)
    for schedule in turn.scheduled:
        if (row := rows.schedules.get(schedule.schedule_id)) is not None:
            check_schedule(state.session_id, schedule, row, rows.triggers)


def _check_not_begun(turn: TurnRecord, triggers: Mapping[str, Row], rows: Rows) -> None:
    """Check that a line whose outbox is not applied has no rows."""
    handled = triggers.get(turn.trigger_id or "")
    early = [key for key in _emitted(turn) if key in triggers]
    early += [each.schedule_id for each in turn.scheduled if each.schedule_id in rows.schedules]
    if early or (handled is not None and handled["resolution"] == "handled"):
        raise TornLine(
            "rows of a line exist, and its outbox is not applied", turn=turn, early=early,
            trigger=handled,
        )  # fmt: skip


def _emitted(turn: TurnRecord) -> Iterator[str]:
    """Yield the triggers that a line emits in any case: those without a key."""
    for reminder in turn.reminders:
        if reminder.reminder_id not in turn.cancelled:
            yield reminder.reminder_id
    for emitted in turn.emitted:
        if emitted.key is None:
            yield emitted.trigger_id


def _check_resumed(snapshot: RootSnapshot, rows: Rows) -> None:
    """Require that something wakes the agent of each ACTIVE task."""
    woken = {row["session_id"] for row in rows.triggers if row["status"] in _OPEN}
    for state in snapshot.judged:
        if state.ended or state.pending or state.session_id in woken:
            continue
        for task_id, row in rows.tasks.items():
            if row["session_id"] == state.session_id and row["status"] == "ACTIVE":
                raise LostTask("nothing resumes an active task", task_id=task_id, path=state.path)
