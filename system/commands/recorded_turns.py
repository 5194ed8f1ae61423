"""The turns of sessions as evidence that a root had a recording: read, never written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from system.agents import event
from system.errors import BadSeal, NewerFormat
from system.ports import FileSystem
from system.recording.wal.checkpoint import CHECKPOINT
from system.recording.wal.log import RECORDS
from system.storage.atomic_file import read_whole
from system.storage.line import decode_line

_SESSIONS: Final = "agents"
_LOG: Final = re.compile(r"events(\.\d+)?\.jsonl")
_RECORDED: Final = b'"execution_id":"'


def log_of_lost_recording(files: FileSystem) -> str | None:
    """Return the log of a session with a recorded turn, if nothing else is left of the recording.

    A turn that is committed has called its provider, and before that the directories of the
    recording were durable. Returns None if they are there, or if no log shows that they were.
    Raises ``OSError``.
    """
    if not _is_gone(files):
        return None
    path = next(filter(None, (_recorded(files, *each) for each in _logs(files))), None)
    # The process that owns the root may have made the directories meanwhile.
    return path if _is_gone(files) else None


def _is_gone(files: FileSystem) -> bool:
    names = files.listdir("")
    return RECORDS not in names and CHECKPOINT not in names


def _logs(files: FileSystem) -> Iterator[tuple[str, str]]:
    """Yield the session and the path of each log."""
    sessions = files.listdir(_SESSIONS) if _SESSIONS in files.listdir("") else []
    for session_id in sessions:
        # A session may be removed meanwhile.
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in files.listdir(f"{_SESSIONS}/{session_id}"):
                if _LOG.fullmatch(name):
                    yield session_id, f"{_SESSIONS}/{session_id}/{name}"


def _recorded(files: FileSystem, session_id: str, path: str) -> str | None:
    """Return the path if the log has a committed turn whose start names an execution."""
    content, recorded = b"", set[object]()
    with suppress(FileNotFoundError):
        content = read_whole(files, path)
    for raw in content.split(b"\n") if _RECORDED in content else ():
        with suppress(BadSeal, NewerFormat):
            line = decode_line(raw, session_id, path)
            if line.event == event.TURN_START and "execution_id" in line.data:
                recorded.add(line.data["turn_id"])
            elif line.event == event.TURN_COMPLETE and line.data["turn_id"] in recorded:
                return path
    return None
