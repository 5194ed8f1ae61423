"""``diff``: the differences between two executions."""

from __future__ import annotations

import click

from system.commands.offline import (
    FOUND,
    USAGE,
    echo_json,
    json_option,
    leave,
    records_of,
    reporting,
    root_option,
)
from system.ports import JsonObject
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.records.json_difference import differences
from system.recording.records.record import ExecutionRecord


@click.command()
@root_option
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
def diff(root: str, first: str, second: str, as_json: bool) -> None:
    """Compare two executions.

    Compares envelope, router decision, events and final response, but not the times and ids of
    the header. Exit codes: 0 they are equal, 1 they differ, 2 usage, or one of them cannot be read,
    130 interrupted.
    """
    with reporting(root):
        try:
            store = records_of(root)
            before, after = _compared(store.load(first)), _compared(store.load(second))
        except (RecordCorruptedError, ForeignRecordFile) as damaged:
            leave(USAGE, damaged)
        found = list(differences(before, after))
        if as_json:
            echo_json([difference.to_dict() for difference in found])
        else:
            for difference in found:
                click.echo(difference)
        if found:
            leave(FOUND)


def _compared(record: ExecutionRecord) -> JsonObject:
    return {
        "envelope": record.envelope,
        "routerDecision": record.router_decision,
        "events": [{"type": str(event.type), "payload": event.payload} for event in record.events],
        "finalResponse": record.final_response,
    }
