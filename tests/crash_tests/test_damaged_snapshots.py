"""Damage to the checkpoint and to a snapshot, met by the whole recovery of a recording.

The damage is reported, no record is wrong, and all executions are served but those whose bytes
are hit; the next recovery has the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from oracles.recording.pack_reader import members_of
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.crash_tests.recorded_root import RecordedRoot, recorded_root
from tests.crash_tests.recording_recovery import Recovered, recover, with_file
from tests.sample import Sample

CHECKPOINT = "checkpoint"
SNAPSHOT = "snapshots/00000001.pack"
SECTOR_BYTES = 512

files = pytest.mark.parametrize("path", [CHECKPOINT, SNAPSHOT], ids=["checkpoint", "snapshot"])


@cache
def durable_root() -> RecordedRoot:
    return recorded_root().durable()


@cache
def content_of(path: str) -> bytes:
    return durable_root().image.files()[f"/{path}"]


def flipped(content: bytes, bits: Iterable[int]) -> Iterator[bytes]:
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def hit(path: str, damaged: bytes | None) -> list[str]:
    """Return the executions of a snapshot that have lost a byte; None is a missing file."""
    if path != SNAPSHOT:
        return []
    content = content_of(path)
    found = []
    for execution_id, member in members_of(content).items():
        start = content.index(member)
        if damaged is None or damaged[start : start + len(member)] != member:
            found.append(execution_id)
    return found


def check(path: str, damaged: bytes | None, *, again: bool = False) -> Recovered:
    """Recover a root with damage to a file; recover it ``again``, which changes nothing.

    If the file is None, it is missing.
    """
    root = with_file(durable_root(), path, lambda _: damaged)
    process = Process(Disk(root.image))
    found = recover(process, root.ids.values())
    reported = path in found.reported
    excused = hit(path, damaged)
    root.shadow().settle(found.records, kept=True, excused=excused, reported=reported)
    assert reported or not excused
    if again:
        second = recover(Process(Disk(process.disk.snapshot())), root.ids.values())
        assert second.records == found.records
        assert second.reported == ()
    return found


# ``unit/recording/test_every_flip.py`` has every flip of such files, without the recovery.
@files
def test_a_flip_is_reported_and_costs_the_hit_execution_only(path: str, sample: Sample) -> None:
    content = content_of(path)
    places = sample(range(len(content)), 60)
    for damaged in flipped(content, [8 * place + place % 8 for place in places]):
        found = check(path, damaged)
        # Bytes behind the seal of a checkpoint have no meaning.
        assert path in found.reported or (path == CHECKPOINT and damaged[:-1] == content[:-1])


@pytest.mark.stress
@files
def test_every_flip_is_reported_and_costs_the_hit_execution_only(path: str) -> None:
    content = content_of(path)
    for damaged in flipped(content, range(8 * len(content))):
        found = check(path, damaged, again=True)
        assert path in found.reported or (path == CHECKPOINT and damaged[:-1] == content[:-1])


@files
@pytest.mark.parametrize("filling", [b"\0", b"\xff"], ids=["zeros", "ones"])
def test_every_lost_sector_is_reported_and_costs_the_hit_executions_only(
    path: str, filling: bytes
) -> None:
    content = content_of(path)
    for start in range(0, len(content), SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, len(content))
        damaged = content[:start] + filling * (end - start) + content[end:]
        assert path in check(path, damaged, again=True).reported


@files
def test_a_shorter_file_is_reported_and_keeps_the_whole_executions(
    path: str, sample: Sample
) -> None:
    content = content_of(path)
    for size in sample(range(len(content) - 1), 24):
        assert path in check(path, content[:size], again=size % 4 == 0).reported


def test_a_missing_snapshot_is_reported_and_costs_its_executions_only() -> None:
    assert SNAPSHOT in check(SNAPSHOT, None, again=True).reported
