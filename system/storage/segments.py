"""The segments of an event log: ``events.jsonl``, then ``events.<n>.jsonl`` from n = 1 on.

A later segment begins with the line ``log.snapshot``, the state computed from all earlier lines.
It is created atomically, and an earlier segment never changes again, so every crash leaves the log
either without or with the new segment. Recovery reads the newest segment; if its first line is
damaged, also those before it. Old segments of a log may be removed if they are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from system.errors import BadSeal
from system.ports import FileSystem
from system.storage.atomic_file import read_whole
from system.storage.line import Line, decode_line
from system.storage.log_scan import scan
from system.storage.path import name_of, parent_of

SNAPSHOT: Final = "log.snapshot"

_SUFFIX: Final = ".jsonl"
_NUMBERED: Final = re.compile(r"\.([1-9][0-9]*)\.jsonl")


class SegmentText(NamedTuple):
    """The bytes that recovery reads of a log whose newest segment is ``number``.

    ``before`` are the lengths in bytes and the paths of the earlier segments at the beginning
    of ``content``; there are none unless the first line of the newest one is damaged.
    ``last_seq`` is the number of the line before the first one. ``size_bytes`` is the length of
    the content with its torn end.
    """

    number: int
    content: bytes
    size_bytes: int
    before: tuple[tuple[int, str], ...]
    last_seq: int


def segment_path(path: str, number: int) -> str:
    """Return the path of a segment of the log at ``path``, which is that of the first one."""
    return f"{path.removesuffix(_SUFFIX)}.{number}{_SUFFIX}" if number else path


def segments_in(names: Sequence[str], path: str) -> list[int]:
    """Return the numbers of the segments among the names in the directory of ``path``."""
    name = name_of(path)
    stem = name.removesuffix(_SUFFIX)
    later = [
        int(found[1])
        for each in names
        if each.startswith(stem) and (found := _NUMBERED.fullmatch(each, len(stem)))
    ]
    return [0] * (name in names) + sorted(later)


def read_newest(
    files: FileSystem, path: str, session_id: str, numbers: Sequence[int]
) -> SegmentText:
    """Read the newest segment, and as many before it as its damage makes necessary.

    Raises ``NewerFormat`` or ``OSError``.
    """
    content, before = b"", list[tuple[int, str]]()
    for number in reversed(numbers):
        here = segment_path(path, number)
        read = read_whole(files, here)
        if number != numbers[-1]:
            before.insert(0, (len(read), here))
        content = read + content
        last_seq = _seq_before(read, session_id, here) if number else 0
        if last_seq is not None:
            return SegmentText(numbers[-1], content, len(content), tuple(before), last_seq)
    return SegmentText(numbers[-1], content, len(content), tuple(before), 0)


def read_lines(
    files: FileSystem, path: str, session_id: str, before: int | None = None
) -> Iterator[Line]:
    """Yield the good lines of all segments, or of those before a number, each once.

    Raises ``NewerFormat`` or ``OSError``.
    """
    names = files.listdir(parent_of(path))
    last_seq = 0
    for each in segments_in(names, path):
        if before is not None and each >= before:
            return
        here = segment_path(path, each)
        content = read_whole(files, here)
        for line in scan(
            content, session_id, here, _seq_before(content, session_id, here) or 0
        ).lines:
            if line.seq > last_seq:
                last_seq = line.seq
                yield line


def remove_segments(
    files: FileSystem, path: str, session_id: str, newest: int, before_ts: str
) -> int:
    """Remove segments that are never read, oldest first, except the last two; return how many.

    A segment is removed if the next one begins with a line that was written by ``before_ts``.
    Raises ``OSError``.
    """
    numbers = segments_in(files.listdir(parent_of(path)), path)
    removed = 0
    for number, following in pairwise(numbers):
        if following >= newest:
            break
        here = segment_path(path, following)
        try:
            first = decode_line(read_whole(files, here).partition(b"\n")[0], session_id, here)
        except BadSeal:
            break
        if first.ts > before_ts:
            break
        files.unlink(segment_path(path, number))
        removed += 1
    return removed


def _seq_before(content: bytes, session_id: str, path: str) -> int | None:
    """Return the number before a segment's first line; None if it cannot begin a segment."""
    try:
        line = decode_line(content.partition(b"\n")[0], session_id, path)
    except BadSeal:
        return None
    return line.seq - 1 if line.seq == 1 or line.event == SNAPSHOT else None
