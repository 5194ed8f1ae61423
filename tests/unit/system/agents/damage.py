"""Damage to the sessions of the tests, as a disk may cause it."""

from __future__ import annotations

from tests.unit.system.agents.room import Room, log_of


def spoil(room: Room, session_id: str, word: str) -> None:
    """Change one byte of the first line that holds ``word``."""
    content = room.read(log_of(session_id))
    at = content.index(word.encode())
    room.write(log_of(session_id), content[:at] + b"?" + content[at + 1 :])


def remove(room: Room, session_id: str) -> None:
    """Remove the directory of a session, with all that is in it."""
    path, files = f"agents/{session_id}", room.host.files
    for name in files.listdir(path):
        files.unlink(f"{path}/{name}")
    files.rmdir(path)
