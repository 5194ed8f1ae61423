"""The rows of a ``state.db``, as plain values by the names of their columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from oracles.violation import InvalidState

Row: TypeAlias = Mapping[str, Any]
Event: TypeAlias = tuple[str, str]
Query: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]

_TRIGGERS: Final = (
    "SELECT id, source, dedup_key, session_id, fire_at, not_before, due_at, priority, description,"
    " payload_json, status, attempts, fence, missed, routed, resolution FROM triggers"
    " ORDER BY rowid"
)
_KEYS: Final = "SELECT key, trigger_id FROM dedup"
_SCHEDULES: Final = (
    "SELECT schedule_id, kind, spec, zone, session_id, priority, description, payload_json,"
    " catch_up, last_nominal, next_fire_at, paused, dead_in_row, ended_at FROM schedules"
    " ORDER BY rowid"
)
_TASKS: Final = "SELECT task_id, session_id, status, todos_json, last_seq FROM tasks ORDER BY rowid"
_ACTIVITIES: Final = (
    "SELECT idem_key, action, arguments_json, status, attempts, provider_ref, decided_by,"
    " session_id, task_id, provider_dedup"
    " FROM activity_log ORDER BY rowid"
)
_EVENTS: Final = "SELECT task_id, seq, event, data_json FROM task_events ORDER BY task_id, seq"
_APPLIED: Final = "SELECT session_id, seq FROM applied"
_ENDED: Final = "SELECT session_id FROM ended"
_REPORTS: Final = "SELECT message_id, session_id FROM reports ORDER BY rowid"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of each table in the order of their insertion.

    ``keys`` are the dedup keys with the triggers that hold them, ``events`` the events of each
    task, with their names and their data as JSON. ``applied`` has the number of the last applied
    line, by session; ``reports`` are messages that were not appended to their logs yet, with
    their sessions; ``ended`` are the sessions that were collected.
    """

    triggers: Sequence[Row]
    keys: Mapping[str, str]
    schedules: Mapping[str, Row]
    tasks: Mapping[str, Row]
    events: Mapping[str, Sequence[Event]]
    activities: Mapping[str, Row]
    applied: Mapping[str, int] = field(default_factory=dict)
    reports: Mapping[str, str | None] = field(default_factory=dict)
    ended: Collection[str] = ()


NO_ROWS: Final = Rows((), {}, {}, {}, {}, {})
"""The rows of a root without a database."""


def read_rows(query: Query) -> Rows:
    """Read all rows with ``query``, which runs one statement and returns its rows."""
    events: defaultdict[str, list[Event]] = defaultdict(list)
    for task_id, seq, event, data in query(_EVENTS):
        events[task_id].append((event, data))
        if seq != len(events[task_id]):
            raise InvalidState("the events of a task are not numbered in order", task_id=task_id)
    return Rows(
        _table(query, _TRIGGERS),
        {str(key): str(trigger_id) for key, trigger_id in query(_KEYS)},
        {row["schedule_id"]: row for row in _table(query, _SCHEDULES)},
        {row["task_id"]: row for row in _table(query, _TASKS)},
        dict(events),
        {row["idem_key"]: row for row in _table(query, _ACTIVITIES)},
        {str(session_id): int(seq) for session_id, seq in query(_APPLIED)},
        {str(message_id): session_id for message_id, session_id in query(_REPORTS)},
        {str(session_id) for (session_id,) in query(_ENDED)},
    )


def _table(query: Query, statement: str) -> list[Row]:
    columns = statement.removeprefix("SELECT ").partition(" FROM ")[0].split(", ")
    return [dict(zip(columns, row, strict=True)) for row in query(statement)]
