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
    """``sequence`` is 0, and ``problem`` says why, if there is no checkpoint that can be read.

    ``content`` are the bytes of a damaged one.
    """

    sequence: int
    problem: str = ""
    content: bytes = b""


def read_checkpoint(files: FileSystem, path: str) -> ReadCheckpoint:
    """Read the checkpoint at ``path``; raises ``NewerFormat`` or ``OSError``."""
    try:
        content = read_whole(files, path)
    except FileNotFoundError:
        return ReadCheckpoint(0, "there is no checkpoint")
    try:
        members = unseal(content.removesuffix(b"\n"))
    except BadSeal as bad:
        return ReadCheckpoint(0, f"it cannot be read: {bad}", content)
    version, sequence = members.get("v"), members.get("sequence")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(path, f"it has format v={version}, known is v={VERSION}")
    if not isinstance(sequence, int) or sequence < 0:
        return ReadCheckpoint(0, f"its sequence is {sequence!r:.100}", content)
    return ReadCheckpoint(sequence)


def write_checkpoint(files: FileSystem, ids: Ids, path: str, sequence: int) -> None:
    """Replace the checkpoint durably; raises as ``write_atomic``."""
    content = seal({"v": VERSION, "sequence": sequence}) + b"\n"
    write_atomic(files, path, content, ids)
