"""``incomplete``: executions that were interrupted, each with the safe action."""

from __future__ import annotations

import click

from system.commands.offline import (
    FOUND,
    echo_json,
    echo_table,
    json_option,
    leave,
    records_of,
    reporting,
    root_option,
)
from system.ports import Json
from system.recording.crash_point import IncompleteExecution, detect_incomplete

_HEADER = ("executionId", "stage", "recovery", "action", "agent", "retriedBy")


@click.command()
@root_option
@click.option("--all", "with_retried", is_flag=True, help="Show those that were retried as well.")
@json_option
def incomplete(root: str, with_retried: bool, as_json: bool) -> None:
    """List the executions that have started and not ended.

    Executions that are running now are listed too.

    Exit codes: 0 there is none, 1 there are some, or records that cannot be read, 2 usage,
    130 interrupted.
    """
    with reporting(root):
        store = records_of(root)
        report = detect_incomplete(store)
        shown = [each for each in report.executions if with_retried or each.retried_by is None]
        rows: list[dict[str, str | None]] = [
            dict(zip(_HEADER, _cells(each), strict=True)) for each in shown
        ]
        if as_json:
            echo_json([dict[str, Json](row) for row in rows])
        elif rows:
            echo_table(_HEADER, [[cell or "-" for cell in row.values()] for row in rows])
        unreadable = [error for _, error in report.unreadable]
        unreadable += store.log_problems()
        unreadable += map(str, store.unreadable_packs())
        if unreadable or any(each.retried_by is None for each in shown):
            leave(FOUND, *unreadable)


def _cells(each: IncompleteExecution) -> tuple[str | None, ...]:
    point = each.point
    return (
        each.execution_id, point.stage, point.recovery, str(point.action), point.agent,
        each.retried_by,
    )  # fmt: skip
