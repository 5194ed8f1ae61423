"""Damage to the snapshot of an execution whose turn is committed, met by a boot of the runtime.

A checkpoint is made while the turns of Ada and Bob are under way. Ada's turn commits, and the
process is killed; the turn of Bob never ends. The start of Ada's execution is only in the snapshot.
Whatever happens to the snapshot, the turn stays committed, its record is complete and right, and
the other records are unchanged.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

from oracles.recording.pack_reader import members_of
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.crash_tests.recorded_team import SENT, RecordedTeam, Team, killed_at_commit
from tests.crash_tests.test_recorded_team import Recovered, check_team, recover
from tests.sample import Sample
from tests.unit.system.agents.fake_provider import FakeProvider

SNAPSHOT: Final = "snapshots/00000002.pack"
SECTOR_BYTES: Final = 512
STRIDE: Final = 41
"""Bytes from one flipped bit to the next."""

ENDS: Final = ("response in the log", "no response", "empty log")
"""What the log has after the checkpoint; a power cut can lose all of it."""

ends = pytest.mark.parametrize("end", ENDS)


class HeldTeam(Team):
    """A team whose checkpoint finds the turn of Ada under way."""

    def __init__(self) -> None:
        self._gate = asyncio.Event()
        self._gate.set()
        provider = FakeProvider()
        provider.hooks["send"] = self._gate.wait
        provider.pieces = ["done"]
        super().__init__(provider)

    def prepare(self) -> None:
        super().prepare()
        self._gate.clear()
        self._send(*SENT[-1])
        recording = self._runtime._orchestrator.recording
        assert recording is not None
        self._run(recording.checkpoint())

    def perform(self) -> None:
        self._gate.set()
        self.world.loop.advance(0)


@cache
def held_team(end: str) -> RecordedTeam:
    """Kill the runtime after Ada's turn: when its line is durable, or later."""
    if end == ENDS[0]:
        team = HeldTeam()
        team.prepare()
        team.perform()
        return team.kill()
    killed = killed_at_commit(HeldTeam)
    if end == ENDS[1]:
        return killed
    process = Process(Disk(killed.image))
    for name in process.listdir("/wal"):
        process.unlink(f"/wal/{name}")
    return killed._replace(image=process.disk.unmounted())


@cache
def sound(end: str) -> Recovered:
    return recover(Process(Disk(held_team(end).image)))


def content_of(team: RecordedTeam) -> bytes:
    return team.image.files()[f"/{SNAPSHOT}"]


def change(process: Process, path: str, content: bytes | None) -> None:
    """Replace the content of a file durably; with None, remove the file."""
    if content is None:
        process.unlink(f"/{path}")
    else:
        process.truncate(f"/{path}", 0)
        descriptor = process.open(f"/{path}", os.O_WRONLY)
        process.write(descriptor, content)
        process.close(descriptor)
    process.sync()


def check(damaged: bytes | None, end: str) -> None:
    """Recover the root with another content of the snapshot, or without it, twice."""
    team = held_team(end)
    expected = sound(end)
    process = Process(Disk(team.image))
    change(process, SNAPSHOT, damaged)
    found = recover(process, is_damaged=True)
    check_team(found, team)
    assert SNAPSHOT in found.damaged or any(SNAPSHOT in each for each in found.findings)
    members = members_of(content_of(team))
    for execution_id, record in expected.records.items():
        actual = found.records.get(execution_id)
        if members.get(execution_id, b"") in (damaged or b""):
            assert actual == record
        elif actual is not None:
            # That of Ada is made again from her session; that of Bob may have lost events.
            assert record is not None
            assert actual.response == record.response
    again = recover(Process(Disk(process.disk.snapshot())))
    assert again.records == found.records


def flipped(content: bytes) -> Iterator[bytes]:
    for place in range(0, len(content), STRIDE):
        changed = bytes((content[place] ^ 1 << place % 8,))
        yield content[:place] + changed + content[place + 1 :]


def zeroed(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, len(content))
        yield content[:start] + bytes(end - start) + content[end:]


def test_the_snapshot_has_both_executions() -> None:
    team = held_team(ENDS[1])
    envelopes = [record.envelope for record in sound(ENDS[1]).records.values() if record]
    members = members_of(content_of(team))
    assert len(members) == 2
    assert len(envelopes) == len(SENT)


@ends
def test_a_flip_leaves_the_turn_with_a_right_record(end: str, sample: Sample) -> None:
    for damaged in sample(flipped(content_of(held_team(end))), 12):
        check(damaged, end)


@ends
def test_a_zeroed_sector_leaves_the_turn_with_a_right_record(end: str) -> None:
    for damaged in zeroed(content_of(held_team(end))):
        check(damaged, end)


@ends
def test_a_shorter_file_leaves_the_turn_with_a_right_record(end: str) -> None:
    content = content_of(held_team(end))
    for size in range(0, len(content), 1 + len(content) // 12):
        check(content[:size], end)


@ends
def test_a_missing_file_leaves_the_turn_with_a_right_record(end: str) -> None:
    check(None, end)
