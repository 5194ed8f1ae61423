"""All that stands on the disk of a room, to be compared with what stood there before."""

from __future__ import annotations

from system.ports import FileKind
from tests.unit.system.agents.room import Room


def everything(room: Room, directory: str = "") -> dict[str, bytes]:
    """Every file below a directory, with its content."""
    found: dict[str, bytes] = {}
    for name in room.host.files.listdir(directory):
        path = f"{directory}/{name}" if directory else name
        if room.host.files.kind(path) is FileKind.DIRECTORY:
            found.update(everything(room, path))
        else:
            found[path] = room.read(path)
    return found
