"""The rows of a ``state.db``, as plain values by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Query: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]

_TRIGGERS: Final = (
    "SELECT id, dedup_key, session_id, fire_at, not_before, due_at, priority, payload_json,"
    " status, attempts, fence, missed, routed, resolution FROM triggers ORDER BY rowid"
)
_KEYS: Final = "SELECT key, trigger_id FROM dedup"
_SCHEDULES: Final = (
    "SELECT schedule_id, last_nominal, next_fire_at, paused, ended_at FROM schedules ORDER BY rowid"
)
_TASKS: Final = "SELECT task_id, session_id, status, last_seq FROM tasks ORDER BY rowid"
_ACTIVITIES: Final = (
    "SELECT idem_key, action, arguments_json, status, attempts, provider_ref, decided_by,"
    " session_id, provider_dedup"
    " FROM activity_log ORDER BY rowid"
)
_EVENTS: Final = "SELECT task_id, count(*), max(seq) FROM task_events GROUP BY task_id"
_APPLIED: Final = "SELECT session_id, seq FROM applied"
_REPORTS: Final = "SELECT message_id, session_id FROM reports ORDER BY rowid"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of each table in the order of their insertion.

    ``keys`` are the dedup keys with the triggers that hold them, ``events`` the numbers of
    events by task. ``applied`` has the number of the last applied line, by session; ``reports``
    are messages that were not appended to their logs yet, with their sessions.
    """

    triggers: Sequence[Row]
    keys: Mapping[str, str]
    schedules: Mapping[str, Row]
    tasks: Mapping[str, Row]
    events: Mapping[str, int]
    activities: Mapping[str, Row]
    applied: Mapping[str, int] = field(default_factory=dict)
    reports: Mapping[str, str | None] = field(default_factory=dict)


NO_ROWS: Final = Rows((), {}, {}, {}, {}, {})
"""The rows of a root without a database."""


def read_rows(query: Query) -> Rows:
    """Read all rows with ``query``, which runs one statement and returns its rows."""
    counts = query(_EVENTS)
    assert all(number == last for _, number, last in counts)
    return Rows(
        _table(query, _TRIGGERS),
        {str(key): str(trigger_id) for key, trigger_id in query(_KEYS)},
        {row["schedule_id"]: row for row in _table(query, _SCHEDULES)},
        {row["task_id"]: row for row in _table(query, _TASKS)},
        {task_id: number for task_id, number, _ in counts},
        {row["idem_key"]: row for row in _table(query, _ACTIVITIES)},
        {str(session_id): int(seq) for session_id, seq in query(_APPLIED)},
        {str(message_id): session_id for message_id, session_id in query(_REPORTS)},
    )


def _table(query: Query, statement: str) -> list[Row]:
    columns = statement.removeprefix("SELECT ").partition(" FROM ")[0].split(", ")
    return [dict(zip(columns, row, strict=True)) for row in query(statement)]
