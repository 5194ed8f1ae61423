"""The law of removed segments: those of the log of USER go after thirty days, the last two never.

Nothing is read from them, so their removal is seen only by a reader that has seen them before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from oracles.runtime.log_reader import read_line

KEPT: Final = timedelta(days=30)


def removed_in_time(here: Mapping[int, bytes], before: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return those segments that were there before, are not now, and could be removed.

    Both are by number. A segment ends when the next one begins, and is removed when the newest
    one begins, thirty days later.
    """
    if len(here) < 2:
        return {}
    newest, last = _begin(here[max(here)]), sorted(here)[-2]
    removed: dict[int, bytes] = {}
    for number in sorted(before.keys() - here.keys()):
        following = min((each for each in (*before, *here) if each > number), default=number)
        end = _begin(here.get(following, before.get(following, b"")))
        if newest is None or end is None or number >= last or newest - end < KEPT:
            return {}
        removed[number] = before[number]
    return removed


def _begin(segment: bytes) -> datetime | None:
    """Return the time of a segment's first line."""
    line = read_line(segment.partition(b"\n")[0])
    return None if isinstance(line, str) else datetime.fromisoformat(line.ts)
