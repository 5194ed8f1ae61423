"""``records``: list, show, verify, invalidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from system.commands.offline import (
    FOUND,
    USAGE,
    echo_json,
    echo_table,
    host_of,
    idle_root_option,
    json_option,
    leave,
    records_of,
    reporting,
    root_option,
    warn,
)
from system.errors import NewerFormat, StorageError
from system.foreign import on_one_line
from system.host import real_host, run
from system.ports import Json, JsonObject
from system.recording.offline_store import OfflineRecords
from system.recording.records.errors import (
    RecordCorruptedError,
    RecordNotFoundError,
    unreadable_text,
)
from system.recording.records.integrity import verify_record_integrity
from system.recording.records.record import ExecutionRecord
from system.recording.records.status import status_of
from system.recovery.recovery_text import damage_text
from system.recovery.resume import Resume
from system.runtime import Options, Runtime


@click.group()
def records() -> None:
    """List, show, verify or invalidate the records of executions.

    Exit codes: 0 done, 1 damage was found, 2 usage, 130 interrupted.
    """


@records.command("list")
@root_option
@json_option
def list_records(root: str, as_json: bool) -> None:
    """List the records. Entries of the log that may not be durable yet are included."""
    with reporting(root, as_json=as_json):
        store = records_of(root)
        damaged: list[str] = []
        newer: list[str] = []
        rows = list(_rows(store, damaged, newer))
        if as_json:
            echo_json(list[Json](rows))
        else:
            names = ("executionId", "createdUtcIso", "status", "agent", "response")
            echo_table(names, [[str(row[name]) for name in names] for row in rows])
        warn(store.foreign_files())
        damaged += store.log_problems()
        _add_packs(store, damaged, newer)
        _leave_with(damaged, newer)


def _add_packs(store: OfflineRecords, damaged: list[str], newer: list[str]) -> None:
    """Add an error for each pack that is damaged or of a newer version."""
    for error in store.unreadable_packs():
        (newer if isinstance(error, NewerFormat) else damaged).append(str(error))


def _leave_with(damaged: Sequence[str], newer: Sequence[str]) -> None:
    """End with an error if there is damage, or a file of a newer version."""
    if damaged or newer:
        leave(FOUND if damaged else USAGE, *damaged, *newer)


def _rows(store: OfflineRecords, damaged: list[str], newer: list[str]) -> Iterator[JsonObject]:
    for execution_id in store.list_all():
        row: JsonObject = {
            "executionId": execution_id, "createdUtcIso": "-", "status": "corrupted",
            "agent": "-", "response": "-",
        }  # fmt: skip
        try:
            record = store.load(execution_id)
        except NewerFormat as error:
            row["status"] = "newer"
            newer.append(str(error))
        except (StorageError, OSError) as error:
            damaged.append(unreadable_text(execution_id, error))
        else:
            response = record.final_response or {}
            row["createdUtcIso"] = record.header.created_utc_iso
            row["status"] = str(status_of(record))
            row["agent"] = str(record.envelope.get("agent", "-"))
            row["response"] = str(response.get("status", "-"))
        yield row


@records.command()
@root_option
@click.argument("execution_id", metavar="ID")
def show(root: str, execution_id: str) -> None:
    """Print a record as JSON. Of a damaged record, the readable part is printed."""
    with reporting(root):
        try:
            echo_json(records_of(root).load(execution_id).to_dict())
        except RecordCorruptedError as corrupted:
            if corrupted.record is not None:
                echo_json(corrupted.record.to_dict())
            raise


@records.command()
@root_option
@json_option
@click.argument("execution_ids", metavar="[ID]...", nargs=-1)
def verify(root: str, execution_ids: tuple[str, ...], as_json: bool) -> None:
    """Verify structure, hashes and event chain of records.

    By default all records are verified, and the log. Records of a newer version are not verified.
    """
    with reporting(root, as_json=as_json):
        store = records_of(root)
        problems, newer = list[str](), list[str]()
        if not execution_ids:
            warn(store.foreign_files())
            problems += store.log_problems()
            _add_packs(store, problems, newer)
        rows = list[JsonObject]()
        for execution_id in execution_ids or store.list_all():
            row: JsonObject = {"executionId": execution_id, "status": "damaged"}
            try:
                row |= _verdict(store.load(execution_id))
            except NewerFormat as error:
                row["status"] = "newer"
                newer.append(str(error))
            except (StorageError, OSError) as error:
                if execution_ids and isinstance(error, RecordNotFoundError):
                    raise
                problems.append(unreadable_text(execution_id, error))
            rows.append(row)
            if not as_json:
                click.echo(_line(row))
        if as_json:
            echo_json(list[Json](rows))
        _leave_with(problems, newer)


def _verdict(record: ExecutionRecord) -> JsonObject:
    report = verify_record_integrity(record)
    return {
        "status": "sound",
        "coverage": report.coverage,
        "function": None if report.function is None else report.function.value,
        "unknownEvents": list[Json](report.unknown_types),
    }


def _line(row: JsonObject) -> str:
    """Return the verdict on a record as a line of text."""
    if row["status"] == "newer":
        return f"{row['executionId']}  of a newer version"
    if row["status"] != "sound":
        return f"{row['executionId']}  {row['status']}"
    function = "" if row["function"] is None else f", {row['function']}"
    types = row["unknownEvents"]
    assert isinstance(types, list)
    unknown = f", unknown events: {on_one_line(', '.join(map(str, types)))}" if types else ""
    return f"{row['executionId']}  sound ({row['coverage']}{function}{unknown})"


@records.command()
@idle_root_option
@click.argument("execution_id", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why the record is invalid.")
@click.option("--by", required=True, metavar="NAME", help="The person who says so.")
def invalidate(root: str, execution_id: str, reason: str, by: str) -> None:
    """Make a record not replayable, for ever. The root must not be in use.

    The root is recovered, and its damage is listed, also if there is no such record.
    """
    with reporting(root):
        host_of(root)
        is_damaged = run(_invalidated(root, execution_id, reason, by))
        click.echo(f"invalidated {execution_id}")
        if is_damaged:
            leave(FOUND)


async def _invalidated(root: str, execution_id: str, reason: str, by: str) -> bool:
    """Recover a root, and invalidate a record; return whether the recovery found damage."""
    # The whole recovery, because the log of a crashed root needs those of the sessions.
    runtime = await Runtime.recover(real_host(root), {}, Options(resume=Resume.NONE))
    try:
        # The next recovery does not find it again.
        damage = list(damage_text(runtime.report))
        warn((*damage, *runtime.report.recording.foreign))
        assert runtime.records is not None
        runtime.records.invalidate(execution_id, reason, by)
    finally:
        await runtime.close()
    return bool(damage)
