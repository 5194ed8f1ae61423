"""The recorded turns in the logs of sessions: read, never written.

They show which executions are committed, and that a root had a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from system.agents import event
from system.errors import BadSeal, NewerFormat
from system.ports import FileSystem
from system.recording.wal.checkpoint import CHECKPOINT
from system.recording.wal.log import RECORDS
from system.storage.atomic_file import read_whole
from system.storage.line import decode_line

_SESSIONS: Final = "agents"
_LOG: Final = re.compile(r"events(\.\d+)?\.jsonl")
_TURN: Final = re.compile(rb'"turn\.(start|complete)"')


class _CommittedTurn(NamedTuple):
    """The execution of a turn, and the path of its line."""

    execution_id: str
    path: str


def log_of_lost_recording(files: FileSystem) -> str | None:
    """Return the log of a session with a recorded turn, if nothing else is left of the recording.

    A turn that is committed has called its provider, and before that the directories of the
    recording were durable. Returns None if they are there, or if no log shows that they were.
    Raises ``OSError``.
    """
    if not _is_gone(files):
        return None
    turns = (turn for each in _logs(files) for turn in _committed(files, *each))
    path = next((turn.path for turn in turns), None)
    # The process that owns the root may have made the directories meanwhile.
    return path if _is_gone(files) else None


def _is_gone(files: FileSystem) -> bool:
    names = files.listdir("")
    return RECORDS not in names and CHECKPOINT not in names


def committed_executions(files: FileSystem, executions: Mapping[str, str]) -> set[str]:
    """Return those executions whose turn is committed; ``executions`` has the session of each.

    Recovery completes their records. A log that cannot be read shows nothing.
    """
    sessions, found = {*executions.values()}, set[str]()
    for session_id, paths in _logs(files) if executions else ():
        if session_id in sessions:
            with suppress(OSError):
                found.update(turn.execution_id for turn in _committed(files, session_id, paths))
    return found.intersection(executions)


def _logs(files: FileSystem) -> Iterator[tuple[str, list[str]]]:
    """Yield each session, with the paths of the segments of its log."""
    sessions = files.listdir(_SESSIONS) if _SESSIONS in files.listdir("") else []
    for session_id in sessions:
        directory = f"{_SESSIONS}/{session_id}"
        # A session may be removed meanwhile.
        with suppress(FileNotFoundError, NotADirectoryError):
            names = filter(_LOG.fullmatch, files.listdir(directory))
            yield session_id, [f"{directory}/{name}" for name in names]


def _committed(
    files: FileSystem, session_id: str, paths: Iterable[str]
) -> Iterator[_CommittedTurn]:
    """Yield the committed turns of a session whose starts name an execution."""
    started, completed = dict[object, str](), dict[object, str]()
    for path in paths:
        content = b""
        with suppress(FileNotFoundError):
            content = read_whole(files, path)
        for raw in filter(_TURN.search, content.split(b"\n")):
            with suppress(BadSeal, NewerFormat):
                line = decode_line(raw, session_id, path)
                if line.event == event.TURN_START and "execution_id" in line.data:
                    started[line.data["turn_id"]] = str(line.data["execution_id"])
                elif line.event == event.TURN_COMPLETE:
                    completed[line.data["turn_id"]] = path
    for turn_id in started.keys() & completed.keys():
        yield _CommittedTurn(started[turn_id], completed[turn_id])
