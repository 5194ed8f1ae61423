"""The sometimes-marks of durable work, read from the rows and the report of a recovery."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from oracles.durable.marks import (
    ACK_REDONE,
    OCCURRENCES_MISSED,
    REPEATED_KEY,
    ROUTED,
    SUPERSEDED,
    TASK_BLOCKED,
    TASK_RESUMED,
    UNCERTAIN,
)
from oracles.durable.rows import Rows


class Report(Protocol):
    """The members of a report of recovery that marks are read from."""

    @property
    def applied(self) -> int: ...
    @property
    def resumed(self) -> Collection[str]: ...


def marks_of_work(
    rows: Rows, requests: Mapping[str, int], report: Report | None = None
) -> Iterator[str]:
    """Yield the marks of rows; ``requests`` counts those to providers of actions by their keys."""
    for trigger in rows.triggers:
        if trigger["resolution"] == "superseded":
            yield SUPERSEDED
        if trigger["missed"]:
            yield OCCURRENCES_MISSED
        if trigger["routed"]:
            yield ROUTED
    if any(task["status"] == "BLOCKED" for task in rows.tasks.values()):
        yield TASK_BLOCKED
    for key, activity in rows.activities.items():
        if activity["status"] == "UNCERTAIN":
            yield UNCERTAIN
        if requests.get(key, 0) > 1:
            yield REPEATED_KEY
    if report is not None:
        if report.applied:
            yield ACK_REDONE
        if report.resumed:
            yield TASK_RESUMED
