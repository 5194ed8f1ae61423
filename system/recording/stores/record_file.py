"""A record as the content of a file: indented JSON, plain or as gzip.

``decode_record`` never returns a record whose structure or hashes do not hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NoReturn, cast

from system.errors import NewerFormat
from system.ports import Json, JsonObject
from system.recording.records.envelope_hash import hash_text
from system.recording.records.errors import (
    ForeignRecordFile,
    RecordCorruptedError,
    problem_of,
)
from system.recording.records.header import Reason
from system.recording.records.record import VERSION, ExecutionRecord
from system.recording.records.record_members import from_dict
from system.recording.records.structure import find_problems
from system.recording.stores import gzip_data
from system.storage.codec import DEEPEST, canonical

SUFFIX: Final = ".json"
COMPRESSED: Final = ".gz"
_DEEPEST_RECORD: Final = DEEPEST + 3
"""The levels of nesting of a record: three above the deepest payload."""


def encode_record(record: ExecutionRecord) -> bytes:
    """Return the content of the file of a record."""
    return record.indented()


def decode_record(data: bytes, path: str, *, compressed: bool = False) -> ExecutionRecord:
    """Return the record of a file's content; ``path`` is for the errors.

    Raises ``RecordCorruptedError`` or ``NewerFormat``.
    """
    if compressed:
        data = _expanded(data, path)
    members = parse_object(data, path)
    version = members.get("v")
    try:
        if type(version) is int and version > VERSION and _has_its_hash(members):
            # Without the hash, it is damage.
            check_version(version, path)
        written = canonical(members, _DEEPEST_RECORD)
        record = from_dict(members)
        problems = find_problems(record)
    except (ValueError, RecursionError) as bad:
        raise RecordCorruptedError(path, [problem_of(bad)]) from bad
    if not record.header.is_foreign:
        problems = (*problems, *_unread(members, written, record))
    if problems:
        raise RecordCorruptedError(path, problems, record)
    return record


def _expanded(data: bytes, path: str) -> bytes:
    """Return the content of a compressed file; the error has the record that can be read."""
    try:
        return gzip_data.expand(data, path)
    except RecordCorruptedError as corrupted:
        readable = _readable(data, path)
        raise RecordCorruptedError(path, corrupted.problems, readable) from corrupted


def _readable(data: bytes, path: str) -> ExecutionRecord | None:
    """Return the record in a damaged gzip file, if all of it is before the damage."""
    try:
        record = decode_record(b"".join(gzip_data.expanded_before_damage(data)), path)
    except (RecordCorruptedError, NewerFormat):
        return None
    # The file is not as it was written, so a replay of it must be forced.
    header = replace(record.header, replayable=False, replayable_reason=Reason.RECORD_CORRUPTED)
    return replace(record, header=header)


def check_version(version: int, path: str) -> None:
    """Raise ``NewerFormat`` for a later version of the format."""
    if version > VERSION:
        raise NewerFormat(path, f"it has format v={version}, known is v={VERSION}")


def check_owner(owner: str, execution_id: str, path: str) -> None:
    """Raise ``ForeignRecordFile`` for a record whose execution is not the one of its path."""
    if owner != execution_id:
        raise ForeignRecordFile(path, f"it is the record of {owner}")


def _unread(members: JsonObject, written: bytes, record: ExecutionRecord) -> Iterator[str]:
    """Yield a problem if a file has members that its record, and so its hash, does not have.

    ``written`` is the canonical form of the members.
    """
    if members.get("routerDecision") != record.router_decision:
        yield "routerDecision is not the payload of the last ROUTER_DECISION"
    elif written != record.encoded():
        yield "it has members that its recordHash does not cover"


def _has_its_hash(members: JsonObject) -> bool:
    """Return whether the ``recordHash`` of any version holds."""
    header = members.get("header")
    if not isinstance(header, dict):
        return False
    bare: JsonObject = {name: item for name, item in header.items() if name != "recordHash"}
    written = canonical({**members, "header": bare}, _DEEPEST_RECORD)
    return header.get("recordHash") == hash_text(written)


def parse_object(data: bytes, path: str) -> JsonObject:
    """Return a JSON object without duplicate keys; raises ``RecordCorruptedError``."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as bad:
        raise RecordCorruptedError(path, [f"it is not JSON: {problem_of(bad)}"]) from bad
    if not isinstance(value, dict):
        raise RecordCorruptedError(path, ["it is not a JSON object"])
    return cast("JsonObject", value)


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {duplicate!r:.100} occurs twice in one object")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
