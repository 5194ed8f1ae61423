"""``replay``: the recorded response of an execution."""

from __future__ import annotations

import json
from posixpath import commonpath
from typing import Final

import click

from system.commands.offline import (
    MISMATCH,
    USAGE,
    echo_json,
    leave,
    records_of,
    reporting,
    root_option,
)
from system.errors import NotPlainJson, StorageError
from system.host import RealFileSystem, RealIds
from system.ports import FileKind, JsonObject
from system.recording.records.errors import RecordCorruptedError, ReplayHashMismatchError
from system.recording.records.json_difference import differences
from system.recording.replays.replay import ReplayEngine, record_to_replay
from system.recording.stores.record_file import parse_object
from system.storage.atomic_file import read_whole, write_atomic
from system.storage.codec import canonical

_RESOLVED: Final = click.Path(resolve_path=True)


@click.command()
@root_option
@click.argument("execution_id", metavar="ID")
@click.option(
    "--verify-envelope", "envelope_file", metavar="FILE", type=click.Path(),
    help="Compare the envelope in this file with the recorded one.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replay a record that is not replayable.")
@click.option("--show-diff", is_flag=True, help="List the differences to the verified envelope.")
@click.option(
    "--output", metavar="FILE", type=_RESOLVED,
    help="Write the result there, atomically; FILE must be outside of the root.",
)  # fmt: skip
def replay(
    root: str, execution_id: str, envelope_file: str | None, force: bool, show_diff: bool,
    output: str | None,
) -> None:  # fmt: skip
    """Print the recorded response of an execution. Nothing is executed.

    Exit codes: 0 done, 1 the record is damaged, 2 usage, 10 not replayable, 11 the envelope is
    another one, 130 interrupted.
    """
    if show_diff and envelope_file is None:
        leave(USAGE, "--show-diff compares with an envelope; add --verify-envelope FILE")
    envelope = None if envelope_file is None else _envelope(envelope_file)
    with reporting(root):
        record = record_to_replay(records_of(root), execution_id, force=force)
        try:
            result = ReplayEngine(record).replay(envelope, force=force)
        except ReplayHashMismatchError as mismatch:
            if show_diff and envelope is not None:
                for difference in differences(record.envelope, envelope):
                    click.echo(difference)
            leave(MISMATCH, mismatch)
        if output is None:
            echo_json(result.to_dict())
        else:
            _write(root, output, result.to_dict())
        for warning in result.warnings:
            click.echo(warning, err=True)


def _envelope(path: str) -> JsonObject:
    """Return the JSON object in a file, or exit."""
    try:
        envelope = parse_object(read_whole(RealFileSystem(""), path), path)
        canonical(envelope)
    except RecordCorruptedError as corrupted:
        leave(USAGE, f"{path}: {corrupted.problems[0]}; give a file with one JSON object")
    except NotPlainJson as error:
        leave(USAGE, f"{path}: {error.place}: {error.reason}; give a file with one JSON object")
    except OSError as error:
        leave(USAGE, f"{path}: {error.strerror or error}; give a file with one JSON object")
    return envelope


def _write(root: str, path: str, result: JsonObject) -> None:
    """Write the result to ``path``, which is resolved, or exit."""
    real_root = str(_RESOLVED.convert(root, None, None))
    if commonpath((real_root, path)) == real_root:
        leave(USAGE, f"--output {path}: replay writes nothing in the root; name another directory")
    text = json.dumps(result, indent=2, sort_keys=True) + "\n"
    files = RealFileSystem("")
    try:
        # The rename would replace a device or a pipe.
        if files.kind(path) not in {None, FileKind.FILE}:
            leave(USAGE, f"--output {path}: it is not a regular file; nothing was written")
        write_atomic(files, path, text.encode("ascii"), RealIds())
    except (OSError, StorageError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        leave(USAGE, f"--output {path}: {reason}; nothing was written")
