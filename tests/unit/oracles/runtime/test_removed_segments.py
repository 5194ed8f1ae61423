"""The law of removed segments of the log of USER."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from oracles.runtime.removed_segments import removed_in_time
from oracles.runtime.root_snapshot import USER_LOG, SnapshotReader
from tests.unit.oracles.runtime.story import sealed

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def segment(seq: int, day: int) -> bytes:
    """A segment whose first line was written on this day."""
    ts = (BEGIN + timedelta(days=day)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    line = {"v": 1, "seq": seq, "ts": ts, "session_id": "0" * 32, "event": "e", "data": {}}
    return sealed(line) + b"\n"


SEGMENTS = {number: segment(number + 1, 10 * number) for number in range(6)}


@pytest.mark.parametrize(
    ("gone", "day", "allowed"),
    [
        ([], 100, []),
        ([0], 40, [0]),
        ([0], 39, []),
        ([0, 1, 2], 60, [0, 1, 2]),
        ([0, 1, 2], 59, []),
        ([1], 60, [1]),
        ([4], 1000, []),
        ([5], 1000, []),
        ([0, 1, 2, 3], 70, [0, 1, 2, 3]),
        ([0, 1, 2, 3, 4], 1000, []),
    ],
)
def test_segments_are_removed_thirty_days_behind_their_end_but_for_the_last_two(
    gone: list[int], day: int, allowed: list[int]
) -> None:
    here = {number: content for number, content in SEGMENTS.items() if number not in gone}
    now_ns = int((BEGIN + timedelta(days=day)).timestamp()) * 10**9
    assert removed_in_time(here, SEGMENTS, now_ns) == {each: SEGMENTS[each] for each in allowed}


def test_the_log_of_user_is_whole_without_a_first_segment_that_was_removed_in_time() -> None:
    reader = SnapshotReader()
    paths = [f"user/events{f'.{number}' if number else ''}.jsonl" for number in SEGMENTS]
    files = dict(zip(paths, SEGMENTS.values(), strict=True))
    whole = reader.read(files).raw_log(USER_LOG)
    assert whole == b"".join(SEGMENTS.values())
    del files[USER_LOG]
    now_ns = round((BEGIN + timedelta(days=40)).timestamp()) * 1_000_000_000
    assert reader.read(files, now_ns).raw_log(USER_LOG) == whole
