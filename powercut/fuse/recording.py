"""Recordings: the journal of a program's disk, with the acknowledgements of the program.

A recording is one file. Its first line is an object of JSON with ``format``, ``version`` and the
fields below except ``journal``, and without ``mapped`` if that is empty; the journal follows as in
``sim/disk/crash/journal_file.py``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from xxhash import xxh3_64_hexdigest

from oracles.history import History, HistoryEntry
from powercut.fuzz.reproducer import write_durably
from sim.disk.crash.journal import Journal
from sim.disk.crash.journal_file import decode_journal, encode_journal
from sim.errors import HarnessError

FORMAT: Final = "powercut recording"
VERSION: Final = 1


class Acknowledgement(NamedTuple):
    """A line of stdout, or the exit status; ``after`` is the number of operations before it."""

    after: int
    text: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a program on a simulated disk.

    ``command`` has the absolute path of the program. ``setup`` is the shell command that made
    the image on which the journal starts, and ``check`` the one that judges crash images; both
    may be empty. ``mount_point`` is the path at which the disk was mounted. ``notes`` are sentences
    about effects of the program that did not reach the disk. ``mapped`` are the numbers of the
    operations that wrote pages of mapped memory, ascending.
    """

    command: tuple[str, ...]
    setup: str
    check: str
    mount_point: str
    exit_status: int
    acknowledgements: tuple[Acknowledgement, ...]
    notes: tuple[str, ...]
    journal: Journal
    mapped: tuple[int, ...] = ()

    def history(self) -> History:
        """Return the acknowledgements as a history."""
        history = History(lambda: len(self.journal))
        history.entries += [
            HistoryEntry(after, True, text) for after, text in self.acknowledgements
        ]
        return history

    def must_say_something(self) -> None:
        """Raise ``HarnessError`` if no crash could lose anything; it ends with the notes."""
        notes = "".join(f"; {note}" for note in self.notes)
        if not len(self.journal):
            failed = f"ended with exit status {self.exit_status} and " if self.exit_status else ""
            reason = (
                f"the program {failed}changed nothing in {self.mount_point}, its working directory"
            )
            if notes:
                raise HarnessError(reason + notes)
            hint = "; a script, or any other file outside of it, needs an absolute path"
            raise HarnessError(
                f"{reason}: it must write to relative paths, so that there is something to lose"
                f"{hint if failed else ''}"
            )
        if not self.acknowledgements:
            raise HarnessError(
                f"nothing was acknowledged, so nothing can be lost: the program printed no line "
                f"and ended with exit status {self.exit_status}{notes}"
            )


def recording_digest(recording: Recording) -> str:
    """Return eight hex digits that are equal for equal recordings."""
    return xxh3_64_hexdigest(_encoded(recording))[:8]


def save_recording(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to a file of the real file system; raises ``OSError``.

    A failure leaves the file as it was. A pipe or a device gets the bytes themselves.
    """
    write_durably(Path(path), _encoded(recording))


def _encoded(recording: Recording) -> bytes:
    header = {
        "format": FORMAT,
        "version": VERSION,
        "command": recording.command,
        "setup": recording.setup,
        "check": recording.check,
        "mount_point": recording.mount_point,
        "exit_status": recording.exit_status,
        "acknowledgements": recording.acknowledgements,
        "notes": recording.notes,
    }
    if recording.mapped:
        header["mapped"] = recording.mapped
    line = json.dumps(header, sort_keys=True).encode() + b"\n"
    return line + encode_journal(recording.journal)


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a file that ``save_recording`` wrote.

    Raises ``HarnessError`` for any other file, and for one of a newer version.
    """
    try:
        line, _, journal = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        raise HarnessError(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise HarnessError(f"{os.fspath(path)} is not a recording of `powercut record`")
    if header.get("version") != VERSION:
        raise HarnessError(
            f"{os.fspath(path)} has version {header.get('version')!r} of the format, and this "
            f"powercut reads version {VERSION}"
        )
    try:
        return _recording(header, decode_journal(journal))
    except (KeyError, TypeError, ValueError, HarnessError) as error:
        raise HarnessError(f"{os.fspath(path)} is damaged: {error}") from None


def _recording(header: Mapping[str, Any], journal: Journal) -> Recording:
    return Recording(
        command=tuple(map(str, header["command"])),
        setup=str(header["setup"]),
        check=str(header["check"]),
        mount_point=str(header["mount_point"]),
        exit_status=int(header["exit_status"]),
        acknowledgements=tuple(
            Acknowledgement(int(after), str(text)) for after, text in header["acknowledgements"]
        ),
        notes=tuple(map(str, header["notes"])),
        journal=journal,
        mapped=tuple(map(int, header.get("mapped", ()))),
    )
