"""Reading a long record in pieces, in constant memory (docs/recording.md, Long records).

A record that this program has written has each member and each event on a separate line, and each
line is an indent followed by canonical JSON. So the hash of the whole record is computed line by
line, in constant memory. A record of another form cannot be read in pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Final

from system.ports import FileSystem, OpenMode
from system.recording.records.errors import RecordCorruptedError, problem_of
from system.recording.records.event import ExecutionEvent
from system.recording.records.record_members import event_from_dict
from system.recording.stores.gzip_data import expanded
from system.recording.stores.record_file import check_owner, check_version
from system.storage.codec import canonical

PIECE_BYTES: Final = 1 << 20
LONGEST_NAME: Final = 256
"""Bytes of a line that are enough for its indent and the name of a member."""

Pieces = Callable[[], Iterator[bytes]]
_RESPONSE: Final = b'  "finalResponse": '
_HEADER: Final = b'  "header": '
_VERSION: Final = re.compile(rb'  "v": (\d+)')
_EVENT: Final = b"    {"
_LAST_EVENT: Final = b"}],"


class RecordStream:
    """The record of an execution, of which ``pieces`` yields the content; ``name`` is for errors.

    Each call verifies ``recordHash`` before it yields anything, so it reads the content twice.
    Raises ``RecordCorruptedError``, ``NewerFormat`` or ``ForeignRecordFile``, and as ``pieces``.
    """

    def __init__(self, pieces: Pieces, name: str, execution_id: str) -> None:
        self._pieces = pieces
        self._name = name
        self._execution_id = execution_id

    def events(self) -> Iterator[ExecutionEvent]:
        """Yield the events; one of them is in memory at a time."""
        self._verify()
        for line in _whole_lines(self._pieces(), _EVENT):
            text = line[: -len("],")] if line.endswith(_LAST_EVENT) else line[:-1]
            yield event_from_dict(json.loads(text))

    def response(self) -> Iterator[bytes]:
        """Yield the final response, canonical JSON, in pieces of 1 MiB at most.

        Nothing is yielded for a record without one.
        """
        self._verify()
        is_response, kept = False, b""
        for starts_line, piece in _parts(self._pieces()):
            if starts_line:
                is_response = piece.startswith(_RESPONSE)
                if kept:
                    break
            if is_response:
                if kept:
                    yield kept
                kept = piece.removeprefix(_RESPONSE) if starts_line else piece
        if (last := kept.removesuffix(b",")) not in {b"", b"null"}:
            yield last

    def _verify(self) -> None:
        digest, header, is_header = sha256(), list[bytes](), False
        expected, execution_id, version = "", "", 0
        for starts_line, piece in _parts(self._pieces()):
            if starts_line and is_header:
                bare, expected, execution_id = self._bare_header(b"".join(header))
                digest.update(bare)
            if starts_line:
                is_header = piece.startswith(_HEADER)
                if (found := _VERSION.match(piece)) is not None:
                    version = int(found[1])
            if is_header:
                header.append(piece)
            else:
                digest.update(_without_indent(piece) if starts_line else piece)
        if expected != f"sha256:{digest.hexdigest()}":
            raise RecordCorruptedError(self._name, ["its lines do not have its recordHash"])
        check_version(version, self._name)
        check_owner(execution_id, self._execution_id, self._name)

    def _bare_header(self, line: bytes) -> tuple[bytes, str, str]:
        """Return the canonical header without the hash of the record, that hash, and the id."""
        try:
            members = json.loads(line.removeprefix(_HEADER).removesuffix(b","))
            expected, execution_id = str(members.pop("recordHash")), str(members["executionId"])
            return b'"header":%s,' % canonical(members), expected, execution_id
        except (ValueError, KeyError, AttributeError) as bad:
            problem = f"its header cannot be read: {problem_of(bad)}"
            raise RecordCorruptedError(self._name, [problem]) from bad


def _without_indent(piece: bytes) -> bytes:
    """Return the beginning of a line as canonical JSON has it."""
    text = piece.lstrip(b" ")
    return text.replace(b'": ', b'":', 1) if text.startswith(b'"') else text


def file_pieces(files: FileSystem, path: str) -> Iterator[bytes]:
    """Yield a file in pieces; raises ``OSError``."""
    file = files.open(path, OpenMode.READ)
    try:
        offset = 0
        while piece := file.pread(PIECE_BYTES - LONGEST_NAME, offset):
            offset += len(piece)
            yield piece
    finally:
        file.close()


def compressed_pieces(pieces: Pieces, name: str) -> Iterator[bytes]:
    """Yield the content of gzip data that ``pieces`` yields; raises as ``expanded``."""
    yield from expanded(pieces(), name)


def _parts(pieces: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Yield pieces without line ends, and whether each starts a line.

    A piece that starts a line has at least the name of the member, or the whole line.
    """
    starts_line, unended = True, b""
    for chunk in pieces:
        *lines, unended = (unended + chunk).split(b"\n")
        for line in lines:
            if line:
                yield starts_line, line
            starts_line = True
        if len(unended) >= LONGEST_NAME or not starts_line:
            yield starts_line, unended
            starts_line, unended = False, b""
    if unended:
        yield starts_line, unended


def _whole_lines(pieces: Iterable[bytes], beginning: bytes) -> Iterator[bytes]:
    """Yield the lines that begin so, each of them whole."""
    line, is_wanted = list[bytes](), False
    for starts_line, piece in _parts(pieces):
        if starts_line:
            if line:
                yield b"".join(line)
            line.clear()
            is_wanted = piece.startswith(beginning)
        if is_wanted:
            line.append(piece)
