"""Kept failures: a crash that a check refused, in a file that repeats it.

The first line is an object of JSON with ``format``, ``version`` and the fields of
``KeptFailure``; the journal of the workload follows as in ``sim/disk/crash/journal_file.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from xxhash import xxh3_64

from faults.crash_point import CrashPoint
from oracles.history import History, HistoryEntry
from powercut.explorer.limits import Limits
from powercut.explorer.plain_value import decoded, encoded
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuzz.reproducer import write_durably
from powercut.place import Place
from sim.disk.crash.journal_file import decode_journal, encode_journal
from sim.disk.disk import Disk
from sim.errors import HarnessError

FORMAT: Final = "powercut failure"
VERSION: Final = 1
SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class KeptFailure:
    """One failure of an exploration.

    ``tag`` is the tag or import string of the workload, ``check`` the import string of a check
    that replaces the workload's own, or None. ``model`` is the name of the model,
    ``property_name`` and ``statement`` are those of the violation, ``entries`` is the number of
    entries that the history had at the first crash. ``timeout`` is the time of an interposed check
    in seconds.
    """

    tag: str
    check: str | None
    model: str
    states_per_point: int
    nested: int
    property_name: str
    statement: str
    crashes: tuple[CrashPoint, ...]
    entries: int
    recorded: RecordedWorkload
    timeout: float = Limits().timeout

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that identify the failure."""
        return fingerprint(self.tag, self.model, self.property_name, self.crashes, self.entries)


def fingerprint(
    tag: str, model: str, property_name: str, crashes: Sequence[CrashPoint], entries: int
) -> str:
    """Return eight hex digits that identify a failure of what ``tag`` names."""
    points = " ".join(map(str, crashes))
    text = f"{tag} {model} {property_name} {points} {entries}"
    return xxh3_64(os.fsencode(text)).hexdigest()[:8]


def save_failure(kept: KeptFailure, folder: Path) -> Path:
    """Write ``<fingerprint>.jsonl`` in ``folder`` atomically, and return its path.

    Raises ``HarnessError`` if the folder cannot be written, and for acknowledged values that
    are not plain.
    """
    path = folder / f"{kept.fingerprint}{SUFFIX}"
    data = json.dumps(_header(kept)).encode("ascii") + b"\n"
    data += encode_journal(kept.recorded.journal)
    try:
        write_durably(path, data)
    except OSError as refused:
        raise HarnessError(f"cannot write the failure {path}: {refused.strerror}") from None
    return path


def is_kept_failure(path: Path) -> bool:
    """Return whether a file begins as a kept failure does; False if it cannot be read."""
    return format_of(path) == FORMAT


def format_of(path: Path) -> object:
    """Return the format that the first line of a file names, None if it names none."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline())
    except (OSError, ValueError, RecursionError):
        return None
    return header.get("format") if isinstance(header, dict) else None


def load_failure(path: Path) -> KeptFailure:
    """Read a file that ``save_failure`` wrote.

    Raises ``HarnessError`` for a file that is malformed, or of another version.
    """
    line, _, journal = path.read_bytes().partition(b"\n")
    header = json.loads(line)
    if header.get("version") != VERSION:
        raise HarnessError(
            f"{path} has version {header.get('version')!r} of its format, and this powercut reads "
            f"version {VERSION}; replay it with the powercut that wrote it"
        )
    try:
        return _kept(header, journal)
    except (KeyError, TypeError, ValueError, HarnessError) as wrong:
        raise HarnessError(f"{path} is a malformed failure: {wrong}") from None


def _header(kept: KeptFailure) -> dict[str, object]:
    recorded = kept.recorded
    return {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": kept.fingerprint,
        "workload": kept.tag,
        "check": kept.check,
        "model": kept.model,
        "states_per_point": kept.states_per_point,
        "nested": kept.nested,
        "timeout": kept.timeout,
        "property": kept.property_name,
        "statement": kept.statement,
        "crashes": [str(point) for point in kept.crashes],
        "entries": kept.entries,
        "root": recorded.root,
        "history": [
            [entry.after, entry.acknowledged, encoded(entry.value), _plain_place(entry.place)]
            for entry in recorded.history.entries
        ],
        "places": {str(number): _plain_place(at) for number, at in recorded.places.items()},
    }


def _kept(header: Mapping[str, Any], journal: bytes) -> KeptFailure:
    operations = decode_journal(journal)
    Disk.from_journal(operations)
    entries = [
        HistoryEntry(int(after), bool(acknowledged), decoded(value), _place(place))
        for after, acknowledged, value, place in header["history"]
    ]
    places = {int(number): _place(place) for number, place in header["places"].items()}
    recorded = RecordedWorkload(
        operations,
        History(lambda: len(operations), entries=entries),
        {number: place for number, place in places.items() if place is not None},
        str(header["root"]),
    )
    check = header["check"]
    return KeptFailure(
        str(header["workload"]),
        None if check is None else str(check),
        str(header["model"]),
        int(header["states_per_point"]),
        int(header["nested"]),
        str(header["property"]),
        str(header["statement"]),
        tuple(CrashPoint.parse(point) for point in header["crashes"]),
        int(header["entries"]),
        recorded,
        float(header.get("timeout", Limits().timeout)),
    )


def _plain_place(place: object) -> list[object] | None:
    return list(place) if isinstance(place, Place) else None


def _place(plain: Any) -> Place | None:
    if plain is None:
        return None
    file, function, line = plain
    return Place(str(file), str(function), int(line))
