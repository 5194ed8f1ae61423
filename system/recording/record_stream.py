"""Reading a long record in pieces, in constant memory (rule X39).

A record that this program has written has each member and each event on a line of its own, and
each line is canonical JSON behind its indent. So the hash of the whole record is computed from
the lines, none of which has to be kept. A record of another form cannot be read in pieces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from system.ports import File, FileSystem, OpenMode
from system.recording.errors import RecordCorruptedError
from system.recording.event import ExecutionEvent
from system.recording.record_members import event_from_dict
from system.storage.codec import canonical

PIECE_BYTES: Final = 1 << 20
LONGEST_NAME: Final = 256
"""Bytes of a line that are enough for its indent and the name of a member."""

_RESPONSE: Final = b'  "finalResponse": '
_HEADER: Final = b'  "header": '
_EVENT: Final = b"    {"
_LAST_EVENT: Final = b"}],"


class RecordStream:
    """The record in the file at ``path``.

    Each call verifies ``recordHash`` before it yields anything. Raises ``RecordCorruptedError``
    or ``OSError``.
    """

    def __init__(self, files: FileSystem, path: str) -> None:
        self._files = files
        self._path = path

    def events(self) -> Iterator[ExecutionEvent]:
        """Yield the events; one of them is in memory at a time."""
        file = self._files.open(self._path, OpenMode.READ)
        try:
            self._verify(file)
            for line in _whole_lines(file, _EVENT):
                text = line[: -len("],")] if line.endswith(_LAST_EVENT) else line[:-1]
                yield event_from_dict(json.loads(text))
        finally:
            file.close()

    def response(self) -> Iterator[bytes]:
        """Yield the final response, canonical JSON, in pieces of 1 MiB at most.

        Nothing is yielded for a record without one.
        """
        file = self._files.open(self._path, OpenMode.READ)
        try:
            self._verify(file)
            is_response, kept = False, b""
            for starts_line, piece in _pieces(file):
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
        finally:
            file.close()

    def _verify(self, file: File) -> None:
        digest, header, is_header = sha256(), list[bytes](), False
        expected = ""
        for starts_line, piece in _pieces(file):
            if starts_line and is_header:
                bare, expected = self._bare_header(b"".join(header))
                digest.update(bare)
            if starts_line:
                is_header = piece.startswith(_HEADER)
            if is_header:
                header.append(piece)
            else:
                digest.update(_without_indent(piece) if starts_line else piece)
        if expected != f"sha256:{digest.hexdigest()}":
            raise RecordCorruptedError(self._path, ["its lines do not have its recordHash"])

    def _bare_header(self, line: bytes) -> tuple[bytes, str]:
        """Return the canonical header without the hash of the record, and that hash."""
        try:
            members = json.loads(line.removeprefix(_HEADER).removesuffix(b","))
            expected = str(members.pop("recordHash"))
            return b'"header":%s,' % canonical(members), expected
        except (ValueError, KeyError, AttributeError) as bad:
            raise RecordCorruptedError(self._path, [f"its header cannot be read: {bad}"]) from bad


def _without_indent(piece: bytes) -> bytes:
    """Return the beginning of a line as canonical JSON has it."""
    text = piece.lstrip(b" ")
    return text.replace(b'": ', b'":', 1) if text.startswith(b'"') else text


def _pieces(file: File) -> Iterator[tuple[bool, bytes]]:
    """Yield the file in pieces without line ends, and whether each starts a line.

    A piece that starts a line has at least the name of the member, or the whole line.
    """
    offset, starts_line, unended = 0, True, b""
    while chunk := file.pread(PIECE_BYTES - LONGEST_NAME, offset):
        offset += len(chunk)
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


def _whole_lines(file: File, beginning: bytes) -> Iterator[bytes]:
    """Yield the lines that begin so, each of them whole."""
    line, is_wanted = list[bytes](), False
    for starts_line, piece in _pieces(file):
        if starts_line:
            if line:
                yield b"".join(line)
            line.clear()
            is_wanted = piece.startswith(beginning)
        if is_wanted:
            line.append(piece)
