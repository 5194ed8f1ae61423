"""Calibration files: one row of JSON a line, plain or compressed by gzip.

A file that is being written, or whose writer was killed, may end within a row; that row is
passed over.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.row import Row
from powercut.calibrate.signatures import is_call
from sim.errors import HarnessError

_TEXT: Final = re.compile(r"(dir|empty|ERR\w+|.\d{1,8}(,.\d{1,8})*)( 1[0-7]{3})?|->.*|=.*")
_GZIP: Final = b"\x1f\x8b"
_LISTS: Final = ("setup", "ops", "results", "mount_failed", "seen")


class NotACalibrationFile(HarnessError):
    """A file is no calibration file.

    Cause: another file was named, or it is damaged. Cure: name a file that ``powercut calibrate
    --json`` wrote.
    """


class CannotWriteRows(HarnessError):
    """Rows cannot be written.

    Cause: the disk is full, or the file may not be written. Cure: free space, or name another file.
    """


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a calibration file; raises ``NotACalibrationFile``."""
    try:
        with path.open("rb") as probe:
            is_compressed = probe.read(2) == _GZIP
        # A row is ASCII; a byte that is not cannot be JSON of ours.
        opener: Any = gzip.open if is_compressed else open
        with opener(path, "rt", encoding="ascii") as file:
            yield from _rows(path, file)
    except (OSError, EOFError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise NotACalibrationFile(f"cannot read {path}: {reason}") from None


@contextmanager
def row_writer(out: str) -> Iterator[Callable[[Row], None]]:
    """Yield a function that appends a row to the file ``out``, or to stdout if that is ``-``.

    The row has reached the kernel when the function returns. It raises ``CannotWriteRows``.
    """
    descriptor, written = 1, 0
    if out != "-":
        try:
            descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError as refused:
            raise CannotWriteRows(f"cannot write --json {out}: {refused.strerror}") from None

    def write(row: Row) -> None:
        nonlocal written
        data = memoryview(f"{json.dumps(row)}\n".encode("ascii"))
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError as refused:
            reason = f"{refused.strerror} after {written} rows"
            raise CannotWriteRows(f"cannot write --json {out}: {reason}") from None
        written += 1

    try:
        yield write
    finally:
        if out != "-":
            os.close(descriptor)


def _rows(path: Path, file: IO[str]) -> Iterator[Row]:
    number = 0
    for number, line in enumerate(file, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if number > 1 and not line.endswith("\n"):
                return
            row = None
        problem = _problem(row)
        if problem:
            raise NotACalibrationFile(f"{path} is no calibration file: line {number} {problem}")
        checked: Row = row
        yield checked
    if number == 0:
        raise NotACalibrationFile(f"{path} is no calibration file: it is empty")


def _problem(row: object) -> str:
    """Return the mistake in a row, as the predicate of a sentence on its line; "" for none."""
    if not isinstance(row, dict):
        return "is not a JSON object"
    for name in _LISTS:
        if not isinstance(row.get(name), list):
            return f"has no list {name!r}"
    if row.get("fs") not in FILE_SYSTEMS:
        return f"is of an unknown file system: fs={row.get('fs')!r}"
    kernel, numbers = row.get("kernel"), (row.get("images"), row.get("seed"))
    if not (isinstance(kernel, str) and kernel.isprintable()):
        return "names no kernel"
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return "has no number of images, or no seed"
    return _problem_of_lists(
        row["setup"] + row["ops"], row["results"], row["seen"], len(row["ops"])
    )


def _problem_of_lists(
    calls: list[object], results: list[object], outcomes: list[object], returned: int
) -> str:
    for call in calls:
        if not is_call(call):
            return f"has a malformed call: {call!r}"
    if len(results) != returned:
        return f"has {returned} calls and {len(results)} results"
    if not all(result is None or isinstance(result, str) for result in results):
        return "has a result that is no name of an errno"
    for outcome in outcomes:
        if not _is_outcome(outcome, returned):
            return f"has a malformed outcome: {outcome!r}"
    return ""


def _is_outcome(outcome: object, calls: int) -> bool:
    if not (isinstance(outcome, dict) and isinstance(outcome.get("out"), dict)):
        return False
    is_text = all(
        isinstance(text, str) and _TEXT.fullmatch(text) for text in outcome["out"].values()
    )
    returned = outcome.get("k")
    return is_text and isinstance(returned, int) and 0 <= returned <= calls
