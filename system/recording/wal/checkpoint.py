"""The checkpoint: all entries of the write-ahead log up to its number are in records or snapshots.

{"pack":2,"records":2,"segment":3,"sequence":41,"snapshots":0,"v":1,"crc":"9f3a11c2"}
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeGuard

from system.errors import BadSeal, NewerFormat
from system.ports import FileKind, FileSystem, Ids, JsonObject
from system.recording.records.errors import ForeignRecordFile
from system.storage.atomic_file import read_whole, write_atomic
from system.storage.codec import seal, unseal

CHECKPOINT: Final = "checkpoint"
VERSION: Final = 1
_LARGEST: Final = (1 << 63) - 1


class Checkpoint(NamedTuple):
    """The numbers of a checkpoint; those of one that cannot be read are 0.

    Segments below the number ``segment`` can be removed. ``pack`` is the number of the pack of
    records, if the checkpoint has one, and of the pack of snapshots. ``records`` is the number of
    the newest pack of records, ``snapshots`` that of the pack of snapshots, both 0 if there is
    none, and None if the checkpoint does not say it. ``content`` are the bytes of a damaged
    checkpoint, and ``problem`` describes the damage.
    """

    sequence: int = 0
    segment: int = 0
    pack: int = 0
    problem: str = ""
    content: bytes = b""
    records: int | None = None
    snapshots: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether there is a checkpoint that could be read."""
        return bool(self.segment)


def read_checkpoint(files: FileSystem, path: str) -> Checkpoint:
    """Read the checkpoint at ``path``.

    Raises ``NewerFormat`` or ``OSError``, and ``ForeignRecordFile`` if it is not a regular file,
    because no checkpoint can be written then.
    """
    kind = files.kind(path)
    if kind is None:
        return Checkpoint()
    if kind is not FileKind.FILE:
        raise ForeignRecordFile(path, "it is not a regular file")
    content = read_whole(files, path)
    try:
        members = unseal(content.removesuffix(b"\n"))
    except BadSeal as bad:
        return Checkpoint(problem=f"it cannot be read: {bad}", content=content)
    version = members.get("v")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(path, f"it has format v={version}, known is v={VERSION}")
    numbers = (members.get("sequence"), members.get("segment", 0), members.get("pack", 0))
    sequence, segment, pack = numbers
    if _is_number(sequence) and _is_number(segment) and _is_number(pack):
        records, snapshots = members.get("records"), members.get("snapshots")
        return Checkpoint(
            sequence, segment, pack,
            records=records if _is_number(records) else None,
            snapshots=snapshots if _is_number(snapshots) else None,
        )  # fmt: skip
    return Checkpoint(problem=f"its numbers are {numbers!r:.100}", content=content)


def _is_number(value: object) -> TypeGuard[int]:
    """Return whether a value can be a number of an entry, a segment or a pack."""
    return isinstance(value, int) and 0 <= value <= _LARGEST


def write_checkpoint(files: FileSystem, ids: Ids, path: str, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint durably; raises as ``write_atomic``."""
    members: JsonObject = {
        "v": VERSION, "sequence": checkpoint.sequence, "segment": checkpoint.segment,
        "pack": checkpoint.pack, "records": checkpoint.records, "snapshots": checkpoint.snapshots,
    }  # fmt: skip
    write_atomic(files, path, seal(members) + b"\n", ids)
