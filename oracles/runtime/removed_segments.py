"""The law of removed segments: of the log of USER, after thirty days, and never the last two.

No boot reads these segments, so only a comparison with an earlier snapshot shows a removal.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from oracles.runtime.log_reader import read_line

KEPT_NS: Final = 30 * 24 * 3600 * 1_000_000_000


def removed_in_time(
    here: Mapping[int, bytes], before: Mapping[int, bytes], now_ns: int
) -> dict[int, bytes]:
    """Return those segments of ``before`` that are missing in ``here`` and could be removed.

    Both are by number. A segment ends when the next one begins, and may be removed thirty days
    later; ``now_ns`` is in nanoseconds since 1970.
    """
    kept = sorted(here)[-2:]
    removed: dict[int, bytes] = {}
    for number in sorted(before.keys() - here.keys()):
        following = min((each for each in (*before, *here) if each > number), default=number)
        end_ns = _begin_ns(here.get(following, before.get(following, b"")))
        if len(kept) < 2 or number >= kept[0] or end_ns is None or now_ns - end_ns < KEPT_NS:
            return {}
        removed[number] = before[number]
    return removed


def _begin_ns(segment: bytes) -> int | None:
    """Return the time of a segment's first line."""
    line = read_line(segment.partition(b"\n")[0])
    if isinstance(line, str):
        return None
    return round(datetime.fromisoformat(line.ts).timestamp() * 1_000_000) * 1000
