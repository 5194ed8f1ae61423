"""The checkpoint: entries of the write-ahead log up to its number are in records and snapshots.

{"sequence":41,"v":1,"crc":"9f3a11c2"}
"""

from __future__ import annotations

from typing import Final, NamedTuple

from system.errors import BadSeal, NewerFormat
from system.ports import FileSystem, Ids
from system.storage.atomic_file import read_whole, write_atomic
from system.storage.codec import seal, unseal

CHECKPOINT: Final = "checkpoint"
VERSION: Final = 1


class ReadCheckpoint(NamedTuple):
    """``sequence`` and ``segment`` are 0 if there is no checkpoint that can be read.

    Segments below the number ``segment`` are superfluous. ``content`` are the bytes of a damaged
    checkpoint, and ``problem`` is the damage.
    """

    sequence: int = 0
    segment: int = 0
    problem: str = ""
    content: bytes = b""


def read_checkpoint(files: FileSystem, path: str) -> ReadCheckpoint:
    """Read the checkpoint at ``path``; raises ``NewerFormat`` or ``OSError``."""
    try:
        content = read_whole(files, path)
    except FileNotFoundError:
        return ReadCheckpoint()
    try:
        members = unseal(content.removesuffix(b"\n"))
    except BadSeal as bad:
        return ReadCheckpoint(problem=f"it cannot be read: {bad}", content=content)
    version, numbers = members.get("v"), (members.get("sequence"), members.get("segment", 0))
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(path, f"it has format v={version}, known is v={VERSION}")
    sequence, segment = numbers
    if not isinstance(sequence, int) or not isinstance(segment, int):
        return ReadCheckpoint(problem=f"its numbers are {numbers!r:.100}", content=content)
    return ReadCheckpoint(sequence, segment)


def write_checkpoint(files: FileSystem, ids: Ids, path: str, sequence: int, segment: int) -> None:
    """Replace the checkpoint durably; raises as ``write_atomic``."""
    content = seal({"v": VERSION, "sequence": sequence, "segment": segment}) + b"\n"
    write_atomic(files, path, content, ids)
