"""Damage to a snapshot and to a pack of records, met by the whole recovery of a recording.

Both are reported, the snapshot by the recovery and the pack by the look-ups. No record is wrong,
and all executions are served but those whose bytes are hit; the next recovery has the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import pytest

from oracles.recording.pack_reader import members_of
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.crash_tests.recording_recovery import recover, with_file
from tests.crash_tests.test_damaged_snapshots import SNAPSHOT, content_of, durable_root, flipped
from tests.sample import Sample

PACK = "records/00000001.pack"
STRIDE = 67
"""Bits from one flipped bit to the next."""


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield a pack with damage of every kind, to its members, its table and its end."""
    flips = flipped(content, range(0, 8 * len(content), STRIDE))
    shorter = (content[:size] for size in range(0, len(content), 1 + len(content) // 20))
    return chain(flips, shorter)


def hit(path: str, damaged: bytes | None) -> set[str]:
    """Return the executions of a pack that have lost a byte; None is a missing file."""
    return {
        execution_id
        for execution_id, member in members_of(content_of(path)).items()
        if damaged is None or member not in damaged
    }


def check(damaged: bytes | None, damaged_pack: bytes) -> None:
    """Recover a root with damage to both files, twice."""
    root = with_file(durable_root(), SNAPSHOT, lambda _: damaged)
    root = with_file(root, PACK, lambda _: damaged_pack)
    process = Process(Disk(root.image))
    found = recover(process, root.ids.values(), has_damaged_pack=True)
    assert SNAPSHOT in found.reported
    lost = hit(PACK, damaged_pack)
    assert all(found.records[each] is None for each in lost)
    # The log has later log records of this execution.
    in_log = root.ids["under way"]
    assert in_log in found.reported or in_log not in hit(SNAPSHOT, damaged)
    root.shadow().settle(found.records, kept=True, excused=lost | hit(SNAPSHOT, damaged))
    second = recover(
        Process(Disk(process.disk.snapshot())), root.ids.values(), has_damaged_pack=True
    )
    assert second.records == found.records
    assert second.reported == ()


def test_each_pack_has_executions_that_the_log_does_not_have() -> None:
    assert members_of(content_of(PACK)).keys() == {durable_root().ids["packed"]}
    assert len(members_of(content_of(SNAPSHOT))) > 1


def test_damage_to_a_snapshot_and_the_loss_of_a_pack_cost_the_hit_executions_only(
    sample: Sample,
) -> None:
    for damaged in sample(damaged_copies(content_of(SNAPSHOT)), 30):
        check(damaged, b"")


def test_damage_to_a_pack_and_the_loss_of_a_snapshot_cost_the_hit_executions_only(
    sample: Sample,
) -> None:
    for damaged_pack in sample(damaged_copies(content_of(PACK)), 30):
        check(b"", damaged_pack)


def test_damage_to_a_pack_and_a_missing_snapshot_cost_the_hit_executions_only(
    sample: Sample,
) -> None:
    for damaged_pack in sample(damaged_copies(content_of(PACK)), 30):
        check(None, damaged_pack)


@pytest.mark.stress
def test_damage_to_both_costs_the_hit_executions_only() -> None:
    for damaged in islice(damaged_copies(content_of(SNAPSHOT)), 0, None, 5):
        for damaged_pack in islice(damaged_copies(content_of(PACK)), 0, None, 5):
            check(damaged, damaged_pack)
