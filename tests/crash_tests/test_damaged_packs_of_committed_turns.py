"""Damage to the snapshot of a committed turn and to a pack of records, met by one boot.

The root is that of ``test_snapshots_of_committed_turns.py``; a pack has the record of a turn before
the checkpoint. The turn of the snapshot has a complete and right record again, although the damaged
pack may seem to have it. The record of the pack is right or damaged, and all others are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

import pytest

from oracles.recording.pack_reader import members_of, read_pack
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.crash_tests.test_recorded_team import check_team, recover
from tests.crash_tests.test_snapshots_of_committed_turns import (
    ENDS,
    SNAPSHOT,
    change,
    content_of,
    ends,
    flipped,
    held_team,
    sound,
    zeroed,
)
from tests.sample import Sample

PACKS = ("records/00000001.pack", "records/00000002.pack")

packs = pytest.mark.parametrize("pack", PACKS)


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield a pack with damage of every kind, to its members, its table and its end."""
    shorter = (content[:size] for size in range(0, len(content), 1 + len(content) // 6))
    return chain(flipped(content), zeroed(content), shorter)


def check(damaged: bytes, pack: str, damaged_pack: bytes, end: str) -> None:
    """Recover the root with another content of the snapshot and of a pack, twice."""
    team, expected = held_team(end), sound(end).records
    process = Process(Disk(team.image))
    members = members_of(team.image.files()[f"/{pack}"])
    change(process, SNAPSHOT, damaged)
    change(process, pack, damaged_pack)
    found = recover(process, is_damaged=True, started=expected, has_damaged_pack=True)
    hit = {each for each, member in members.items() if member not in damaged_pack}
    check_team(found, team, pack, sessions_of(pack, end))
    assert SNAPSHOT in found.damaged
    in_snapshot = members_of(content_of(team))
    for execution_id, record in expected.items():
        actual = found.records.get(execution_id)
        if in_snapshot.get(execution_id, b"") in damaged and execution_id not in hit:
            assert actual == record
        elif actual is not None:
            assert record is not None
            assert actual.response == record.response
        elif execution_id in hit:
            assert execution_id in found.records
    again = recover(Process(Disk(process.disk.snapshot())), started=expected, has_damaged_pack=True)
    assert again.records == found.records


def sessions_of(pack: str, end: str) -> set[str]:
    """Return the sessions that have records in a pack."""
    records = read_pack(pack, held_team(end).image.files()[f"/{pack}"]).values()
    return {json.loads(record.envelope)["routingMetadata"]["session_id"] for record in records}


def test_each_pack_has_a_record_of_a_committed_turn() -> None:
    files = held_team(ENDS[1]).image.files()
    for pack in PACKS:
        records = read_pack(pack, files[f"/{pack}"]).values()
        assert [record.response is not None for record in records] == [True]


@packs
@ends
def test_damage_to_a_pack_and_the_loss_of_a_snapshot_leave_the_turn_with_a_right_record(
    pack: str, end: str, sample: Sample
) -> None:
    content = held_team(end).image.files()[f"/{pack}"]
    for damaged_pack in sample(damaged_copies(content), 8):
        check(b"", pack, damaged_pack, end)


@packs
@ends
def test_damage_to_a_snapshot_and_the_loss_of_a_pack_leave_the_turn_with_a_right_record(
    pack: str, end: str, sample: Sample
) -> None:
    for damaged in sample(damaged_copies(content_of(held_team(end))), 8):
        check(damaged, pack, b"", end)


@ends
def test_a_missing_directory_of_records_leaves_every_turn_with_a_right_record(end: str) -> None:
    team, expected = held_team(end), sound(end).records
    process = Process(Disk(team.image))
    for name in process.listdir("/records"):
        process.unlink(f"/records/{name}")
    process.rmdir("/records")
    process.sync()
    found = recover(process, is_damaged=True)
    check_team(found, team)
    assert any(each.startswith("records: ") for each in found.findings)
    assert {each: record and record.response for each, record in found.records.items()} == {
        each: record and record.response for each, record in expected.items()
    }
    again = recover(Process(Disk(process.disk.snapshot())))
    assert again.records == found.records
    assert again.findings == ()
