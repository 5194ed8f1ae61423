"""The common part of the commands: their root, their exit codes, their errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, EPERM, EROFS
from typing import Final, NoReturn

import click

from system.commands.recorded_turns import log_of_lost_recording
from system.durable.errors import RowDamaged
from system.errors import NotARoot, NotPlainJson, RuntimeRefused, StorageError
from system.foreign import on_one_line
from system.host import reading_host
from system.ports import Host, Json
from system.recording.offline_store import OfflineRecords
from system.recording.records.errors import (
    ForeignRecordFile,
    NotReplayableError,
    RecordCorruptedError,
    RecorderError,
    RecordNotFoundError,
    ReplayHashMismatchError,
)
from system.recording.wal.format import DIRECTORY
from system.recording.wal.log import RECORDS
from system.root import MARKER, root_id_of

FOUND: Final = 1
USAGE: Final = 2
NOT_REPLAYABLE: Final = 10
MISMATCH: Final = 11
INTERRUPTED: Final = 130
NO_READER: Final = 141

_ACCESS: Final = "give this user access to it, or use a copy of the root"
_REMEDIES: Final = {
    EACCES: _ACCESS,
    EPERM: _ACCESS,
    EROFS: "mount its file system writable, or use a writable copy of the root",
}

root_option = click.option(
    "--root", required=True, metavar="DIR", type=click.Path(),
    help="The directory of the runtime; it may be in use.",
)  # fmt: skip
idle_root_option = click.option(
    "--root", required=True, metavar="DIR", type=click.Path(),
    help="The directory of the runtime; it must not be in use.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def warn(sentences: Iterable[object]) -> None:
    """Print sentences to the error stream, each on one line, whatever names it has."""
    for sentence in sentences:
        click.echo(on_one_line(str(sentence)), err=True)


def leave(code: int, *sentences: object) -> NoReturn:
    """Print sentences to the error stream, and exit."""
    warn(sentences)
    click.get_current_context().exit(code)


@contextmanager
def reporting(root: str, *, as_json: bool = False) -> Iterator[None]:
    """Report errors in one sentence, with their exit codes.

    ``as_json`` is given by a command that prints a list as JSON: if damage lets it read nothing,
    it prints an empty list.
    """
    try:
        yield
    except NotReplayableError as refused:
        details = f" (also: {', '.join(refused.details)})" if refused.details else ""
        leave(
            NOT_REPLAYABLE,
            f"not replayable: {refused.reason}{details}; --force returns what was recorded",
        )
    except ReplayHashMismatchError as mismatch:
        leave(MISMATCH, mismatch)
    except (RecordCorruptedError, ForeignRecordFile, RowDamaged) as damaged:
        if as_json:
            echo_json([])
        leave(FOUND, damaged)
    except RecordNotFoundError as unknown:
        leave(USAGE, f"--root {root}: {unknown}")
    except (RuntimeRefused, StorageError, RecorderError) as refused:
        leave(USAGE, f"--root {root}: {refused}")
    except (NotPlainJson, UnicodeEncodeError) as odd:
        leave(USAGE, f"a text is not UTF-8 ({odd.reason}); give arguments in UTF-8")
    except OSError as error:
        remedy = remedy_of(error, "name another directory")
        leave(USAGE, f"--root {root}: {sentence_of(error)}; {remedy}")
    except KeyboardInterrupt:
        leave(INTERRUPTED, "interrupted")


def sentence_of(error: OSError) -> str:
    """Return the reason of an error of the operating system, with its path."""
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def remedy_of(error: OSError, otherwise: str) -> str:
    """Return the remedy for a root that may not be read or changed, else ``otherwise``."""
    return _REMEDIES.get(error.errno or 0, otherwise)


def host_of(root: str) -> Host:
    """Return a host on an existing root, and change nothing.

    Raises ``NotARoot``, ``NewerFormat`` or ``OSError``.
    """
    host = _host_of(root)
    if MARKER not in host.files.listdir(""):
        raise NotARoot("the directory", f"it holds no {MARKER}", may_be_empty=False)
    return host


def host_of_recording(root: str) -> Host:
    """Return a host on a root, or on a directory that was recorded without a runtime.

    Raises as ``host_of``.
    """
    host = _host_of(root)
    if {MARKER, DIRECTORY, RECORDS}.isdisjoint(host.files.listdir("")):
        reason = f"it holds neither {MARKER} nor {DIRECTORY}"
        raise NotARoot("the directory", reason, may_be_empty=False)
    return host


def _host_of(root: str) -> Host:
    if not root:
        raise NotARoot("the name", "it is empty", may_be_empty=False)
    host = reading_host(root)
    # The records of a root with a damaged marker can be read.
    with suppress(NotARoot, FileNotFoundError):
        root_id_of(host.files)
    return host


def records_of(root: str) -> OfflineRecords:
    """Return the records of a root; raises as ``host_of_recording`` and ``OfflineRecords``."""
    host = host_of_recording(root)
    store = OfflineRecords(host)
    if not store.missing_paths and (path := log_of_lost_recording(host.files)) is not None:
        store.add_missing(RECORDS, f"the directory is missing, and {path} has recorded turns")
    return store


def echo_json(value: Json) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, sort_keys=True))


def echo_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns, with a header; a row has one line, whatever its cells have."""
    shown = [list(header), *([on_one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())
