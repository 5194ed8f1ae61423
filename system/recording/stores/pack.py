"""A pack: the executions of one checkpoint in one file, with a table by which they are found.

    pack    = member*  table  trailer
    member  = gzip of the lines of an execution, one for each of its log records
    line    = type, two decimal digits; a space; JSON as in ``log_record.py``; a line end
    table   = (id:8  hash:8  start:8  size:8  digest:16)*         by id, ascending
    trailer = table_bytes:8  table_crc:4  "SYREC"  version:1 (= 1)  crc:4

Integers are big-endian. ``id`` is the value of the 16 digits of an execution id, ``hash`` the first
8 bytes of the hash of its envelope, ``start`` and ``size`` the place of the member, and ``digest``
the first 16 bytes of its SHA-256. The last crc covers the 18 bytes before it. A damaged member
does not affect the others. If the table is damaged, members are found by their first bytes, and
their ids in their log records.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple, Protocol
from zlib import crc32

from system.errors import NewerFormat
from system.ports import File, FileSystem, OpenMode
from system.recording.executions.log_record import log_records_in
from system.recording.executions.record_builder import RecordBuilder
from system.recording.records.errors import RecordCorruptedError, problem_of
from system.recording.records.execution_id import PREFIX
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import checked
from system.recording.stores.gzip_data import (
    MEMBER_START,
    compressed,
    compressed_pieces,
    expand_first,
    expanded,
)
from system.recording.stores.readable_part import readable_part
from system.storage.atomic_file import read_whole
from system.storage.transfer import read_all

NAME: Final = re.compile(r"([0-9]{8}|[1-9][0-9]{8,})\.pack")
MAGIC: Final = b"SYREC"
VERSION: Final = 1
PIECE_BYTES: Final = 1 << 16

_ROW: Final = Struct(">8s8sQQ16s")
_TRAILER: Final = Struct(">QI5sB")
_CRC: Final = Struct(">I")
_TRAILER_BYTES: Final = _TRAILER.size + _CRC.size
_DIGEST_BYTES: Final = 16
_HASH: Final = re.compile("sha256:([0-9a-f]{16})")


def pack_name(number: int) -> str:
    """Return the name of a pack, from 1; a number has at least eight digits."""
    return f"{number:08d}.pack"


class Packable(Protocol):
    """An execution that can be written into a pack."""

    @property
    def execution_id(self) -> str:
        """Its id."""
        ...

    @property
    def envelope_hash(self) -> str:
        """The hash of its envelope."""
        ...

    @property
    def is_long(self) -> bool:
        """Whether its lines need not be in memory as a whole."""
        ...

    def pieces(self) -> Iterable[bytes]:
        """Yield the lines of its log records in pieces."""
        ...


class _Row(NamedTuple):
    key: bytes
    hash: bytes
    start: int
    size_bytes: int
    digest: bytes


class Member(NamedTuple):
    """The place of an execution in the pack at ``path``."""

    path: str
    execution_id: str
    start: int
    size_bytes: int
    digest: bytes

    @property
    def name(self) -> str:
        """The pack and the execution, for errors."""
        return f"{self.path} ({self.execution_id})"

    def record(self, files: FileSystem) -> ExecutionRecord:
        """Return the record; raises ``RecordCorruptedError`` or ``OSError``.

        The error has the part of the record that can be read.
        """
        try:
            record = builder_of(self.lines(files), self.name).record()
        except RecordCorruptedError as corrupted:
            readable = readable_part(self.stored(files), self.execution_id)
            raise RecordCorruptedError(self.name, corrupted.problems, readable) from corrupted
        return checked(record, self.name)

    def lines(self, files: FileSystem) -> bytes:
        """Return all lines; raises as ``record``."""
        data = self.stored(files)
        # With this digest it is what was written, of any length.
        self._verify((data,))
        return b"".join(expanded((data,), self.name))

    def pieces(self, files: FileSystem) -> Iterator[bytes]:
        """Yield the lines in pieces, after all of them were verified; raises as ``record``."""
        self._verify(self._stored(files))
        yield from expanded(self._stored(files), self.name)

    def _verify(self, stored: Iterable[bytes]) -> None:
        digest = sha256()
        for piece in stored:
            digest.update(piece)
        if digest.digest()[:_DIGEST_BYTES] != self.digest:
            raise RecordCorruptedError(self.name, ["its bytes do not have the digest of the table"])

    def stored(self, files: FileSystem) -> bytes:
        """Return the bytes as they are in the pack; raises ``OSError``.

        They are fewer, and so have another digest, if the pack ends before the end of the member.
        """
        return b"".join(self._stored(files))

    def _stored(self, files: FileSystem) -> Iterator[bytes]:
        file = files.open(self.path, OpenMode.READ)
        try:
            end = min(self.start + self.size_bytes, file.size())
            for start in range(self.start, end, PIECE_BYTES):
                yield read_all(file, start, min(start + PIECE_BYTES, end))
        finally:
            file.close()


def builder_of(lines: bytes, name: str) -> RecordBuilder:
    """Return the execution of these lines; raises ``RecordCorruptedError`` for other bytes."""
    try:
        builder = RecordBuilder.of(log_records_in((lines,)))
    except ValueError as bad:
        raise RecordCorruptedError(name, [problem_of(bad)]) from bad
    if builder.start is None:
        raise RecordCorruptedError(name, ["it has no start"])
    return builder


class PackTable(NamedTuple):
    """The rows of the table of the pack at ``path``.

    ``problem`` is the damage of a table that was computed again from the members, or empty.
    """

    path: str
    rows: bytes
    problem: str = ""

    def __len__(self) -> int:
        return len(self.rows) // _ROW.size

    def members(self) -> Iterator[Member]:
        """Yield the places of all executions."""
        for row in map(_Row._make, _ROW.iter_unpack(self.rows)):
            yield self._member(row)

    def _member(self, row: _Row) -> Member:
        return Member(self.path, PREFIX + row.key.hex(), row.start, row.size_bytes, row.digest)

    def ids(self) -> Iterator[str]:
        """Yield the ids of all executions, ascending."""
        for member in self.members():
            yield member.execution_id

    def ids_with(self, envelope_hash: str) -> Iterator[str]:
        """Yield the ids of the executions that may have this envelope hash."""
        wanted = _hash_bytes(envelope_hash)
        for key, found, *_ in _ROW.iter_unpack(self.rows):
            if found == wanted:
                yield PREFIX + key.hex()

    def find(self, execution_id: str) -> Member | None:
        """Return the place of an execution, or None."""
        wanted, rows, size = _key_of(execution_id), self.rows, _ROW.size
        number = bisect_left(range(len(self)), wanted, key=lambda n: rows[n * size : n * size + 8])
        if number == len(self):
            return None
        row = _Row._make(_ROW.unpack_from(rows, number * size))
        return self._member(row) if row.key == wanted else None


def pack_pieces(executions: Iterable[Packable]) -> Iterator[bytes]:
    """Yield the content of a pack; raises what the pieces of the executions raise."""
    rows, start = list[_Row](), 0
    for each in executions:
        digest, size_bytes = sha256(), 0
        for piece in _member_pieces(each):
            digest.update(piece)
            size_bytes += len(piece)
            yield piece
        key, hashed = _key_of(each.execution_id), _hash_bytes(each.envelope_hash)
        rows.append(_Row(key, hashed, start, size_bytes, digest.digest()[:_DIGEST_BYTES]))
        start += size_bytes
    table = _table_of(rows)
    trailer = _TRAILER.pack(len(table), crc32(table), MAGIC, VERSION)
    yield table
    yield trailer + _CRC.pack(crc32(trailer))


def _member_pieces(execution: Packable) -> Iterable[bytes]:
    if execution.is_long:
        return compressed_pieces(execution.pieces())
    return (compressed(b"".join(execution.pieces())),)


def read_table(files: FileSystem, path: str) -> PackTable:
    """Return the table of a pack, computed from the members if it is damaged.

    Raises ``NewerFormat`` or ``OSError``.
    """
    file = files.open(path, OpenMode.READ)
    try:
        rows, problem = _stored_rows(file, path)
    finally:
        file.close()
    if problem:
        rows = _table_of(_rows_of_members(read_whole(files, path), path))
    return PackTable(path, rows, problem)


def _stored_rows(file: File, path: str) -> tuple[bytes, str]:
    """Return the rows, or the reason why they cannot be read."""
    end = file.size() - _TRAILER_BYTES
    if end < 0:
        return b"", "it is cut off"
    trailer = read_all(file, end)
    size_bytes, table_crc, magic, version = _TRAILER.unpack_from(trailer)
    (crc,) = _CRC.unpack_from(trailer, _TRAILER.size)
    if magic != MAGIC or crc != crc32(trailer[: _TRAILER.size]):
        return b"", "it does not end with the trailer of a pack"
    if version != VERSION:
        raise NewerFormat(path, f"it is a pack of format {version}, known is {VERSION}")
    rows = read_all(file, end - size_bytes, end) if size_bytes <= end else b""
    if crc32(rows) != table_crc or len(rows) % _ROW.size:
        return b"", "its table is damaged"
    return rows, ""


def _rows_of_members(content: bytes, path: str) -> Iterator[_Row]:
    """Yield a row for each whole member of a pack."""
    start = content.find(MEMBER_START)
    while start >= 0:
        try:
            lines, end = expand_first(content, path, start)
            log_records = builder_of(lines, path).start
        except RecordCorruptedError:
            start = content.find(MEMBER_START, start + 1)
            continue
        assert log_records is not None
        key, hashed = _key_of(log_records.execution_id), _hash_bytes(log_records.envelope_hash)
        digest = sha256(content[start:end]).digest()[:_DIGEST_BYTES]
        yield _Row(key, hashed, start, end - start, digest)
        start = content.find(MEMBER_START, end)


def _table_of(rows: Iterable[_Row]) -> bytes:
    return b"".join([_ROW.pack(*row) for row in sorted(rows)])


def _key_of(execution_id: str) -> bytes:
    return bytes.fromhex(execution_id.removeprefix(PREFIX))


def _hash_bytes(envelope_hash: str) -> bytes:
    """Return the first 8 bytes of a hash; zeros for the hash in a damaged snapshot."""
    found = _HASH.match(envelope_hash)
    return bytes(8) if found is None else bytes.fromhex(found[1])
