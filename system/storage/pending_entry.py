"""The entry of the framing ``pending``, as a crash may have left it.

It has every line that was not durable in the log when it was written. It is replayed only if it
is complete; lines that the log already has are skipped. An older entry that reappears, because its
removal was not durable, is stale.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from system.errors import BadSeal
from system.ports import FileSystem
from system.storage.atomic_file import read_whole
from system.storage.line import Line, decode_line
from system.storage.log_report import PendingVerdict
from system.storage.pending_writer import END_OF_ENTRY


class PendingEntry(NamedTuple):
    """A pending entry and the verdict on it.

    ``lines`` are to be appended, and ``encoded`` are their bytes, line ends included. If the
    entry is ahead of the log, ``missing`` is the gap before it, whose lines were durable when
    the entry was written.
    """

    verdict: PendingVerdict
    lines: tuple[Line, ...] = ()
    encoded: bytes = b""
    missing: tuple[tuple[int, int], ...] = ()


NO_ENTRY: Final = PendingEntry(PendingVerdict.ABSENT)


def read_pending_entry(
    files: FileSystem, path: str, session_id: str, last_seq: int
) -> PendingEntry:
    """Compare the entry at ``path`` with a log whose last line is ``last_seq``.

    Raises ``OSError`` and ``NewerFormat``.
    """
    try:
        content = read_whole(files, path)
    except FileNotFoundError:
        return NO_ENTRY
    try:
        lines = _decode(content, session_id, path)
    except BadSeal:
        return PendingEntry(PendingVerdict.TORN)
    if lines[-1].seq <= last_seq:
        return PendingEntry(PendingVerdict.STALE)
    known = last_seq + 1 - lines[0].seq
    if known < 0:
        missing = ((last_seq + 1, lines[0].seq - 1),)
        return PendingEntry(PendingVerdict.AHEAD, missing=missing)
    encoded = b"".join(content.splitlines(keepends=True)[known:-1])
    return PendingEntry(PendingVerdict.REPLAYED, tuple(lines[known:]), encoded)


def _decode(content: bytes, session_id: str, path: str) -> list[Line]:
    """Return the lines of a whole entry, numbered without gaps; ``BadSeal`` for any other."""
    if not content.endswith(b"\n" + END_OF_ENTRY):
        raise BadSeal("its end is missing")
    encoded = content[: -len(b"\n" + END_OF_ENTRY)].split(b"\n")
    lines = [decode_line(each, session_id, path) for each in encoded]
    if [line.seq for line in lines] != list(range(lines[0].seq, lines[0].seq + len(lines))):
        raise BadSeal("its lines do not follow one another")
    return lines
