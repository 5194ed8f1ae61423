"""``incomplete``: executions that were interrupted, each with the safe action."""

from __future__ import annotations

from collections.abc import Iterable

import click

from system.commands.offline import (
    FOUND,
    echo_json,
    echo_table,
    host_of_recording,
    json_option,
    leave,
    records_of,
    reporting,
    root_option,
    warn,
)
from system.commands.recorded_turns import committed_executions
from system.ports import FileSystem, Json
from system.recording.crash_point import (
    COMMITTED,
    Action,
    CrashPoint,
    IncompleteExecution,
    detect_incomplete,
)
from system.recording.offline_store import OfflineRecords

_HEADER = ("executionId", "stage", "recovery", "action", "agent", "retriedBy")


@click.command()
@root_option
@click.option("--all", "with_retried", is_flag=True, help="Show those that were retried as well.")
@json_option
def incomplete(root: str, with_retried: bool, as_json: bool) -> None:
    """List the executions that have started and not ended.

    Executions that are running now are listed too, and those whose turn is committed: their
    records are completed by the next recovery, and nothing is to be done.

    Exit codes: 0 none was interrupted, 1 there are some, or records that cannot be read, 2
    usage, 130 interrupted.
    """
    with reporting(root, as_json=as_json):
        store = records_of(root)
        report = detect_incomplete(store)
        executions = _with_committed(store, host_of_recording(root).files, report.executions)
        shown = [each for each in executions if with_retried or each.retried_by is None]
        rows: list[dict[str, str | None]] = [
            dict(zip(_HEADER, _cells(each), strict=True)) for each in shown
        ]
        if as_json:
            echo_json([dict[str, Json](row) for row in rows])
        elif rows:
            echo_table(_HEADER, [[cell or "-" for cell in row.values()] for row in rows])
        warn(store.foreign_files())
        unreadable = [error for _, error in report.unreadable]
        unreadable += store.log_problems()
        unreadable += map(str, store.unreadable_packs())
        if unreadable or any(map(_is_open, shown)):
            leave(FOUND, *unreadable)


def _with_committed(
    store: OfflineRecords, files: FileSystem, executions: Iterable[IncompleteExecution]
) -> list[IncompleteExecution]:
    """Return the executions, as committed if a session has the turn of one that is in the log."""
    found, sessions = list(executions), dict[str, str]()
    for each in found:
        if (execution := store.log.executions.get(each.execution_id)) is not None:
            metadata = execution.record().envelope.get("routingMetadata")
            session_id = metadata.get("session_id") if isinstance(metadata, dict) else None
            if isinstance(session_id, str):
                sessions[each.execution_id] = session_id
    committed = committed_executions(files, sessions)
    return [_committed(each) if each.execution_id in committed else each for each in found]


def _committed(each: IncompleteExecution) -> IncompleteExecution:
    return each._replace(point=CrashPoint(*COMMITTED, Action.NONE, each.point.agent))


def _is_open(each: IncompleteExecution) -> bool:
    """Return whether an execution was interrupted, and not retried."""
    return each.retried_by is None and each.point.action is not Action.NONE


def _cells(each: IncompleteExecution) -> tuple[str | None, ...]:
    point = each.point
    return (
        each.execution_id, point.stage, point.recovery, str(point.action), point.agent,
        each.retried_by,
    )  # fmt: skip
