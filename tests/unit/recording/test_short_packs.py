"""Packs that have lost bytes in their middle: damage of their members, not an error of the disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

import pytest

from system.recording.records.errors import RecordCorruptedError
from system.recording.replays.replay import batch_replay
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import run
from tests.unit.recording.recording_bench import Bench

PACK: Final = "00000001.pack"


def lose_bytes(pack: Path, kept_bytes: int = 10) -> None:
    """Remove the bytes between the first few and the table, so that some members are behind it."""
    content = pack.read_bytes()
    table = int.from_bytes(content[-22:-14], "big") + 22
    pack.write_bytes(content[:kept_bytes] + content[-table:])


def test_a_boot_reports_a_short_pack_of_snapshots_and_continues(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        running = sorted(bench.started(2)[1] for _ in range(3))
        await bench.recording.checkpoint()
        done = await bench.finished()
        lose_bytes(bench.root / "snapshots" / PACK)

        await bench.open()

        assert bench.log.report.corrupted == running
        assert {each.path for each in bench.log.report.damaged} == {f"snapshots/{PACK}"}
        assert bench.store.load(done.execution_id) == done

    run(work())


def test_records_of_a_short_pack_are_corrupted(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        ids = [(await bench.finished()).execution_id for _ in range(3)]
        await bench.recording.close()
        lose_bytes(bench.root / "records" / PACK)
        await bench.open()
        for execution_id in ids:
            with pytest.raises(RecordCorruptedError, match=execution_id):
                bench.store.load(execution_id)
            with pytest.raises(RecordCorruptedError, match=execution_id):
                list(bench.recording.files.stream_response(execution_id))
        results = batch_replay(bench.store, ids)
        assert [each.metadata for each in results.values()] == [{"error": "record_corrupted"}] * 3

    run(work())


def test_a_pack_that_the_disk_refuses_to_read_is_not_damaged(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        record = await bench.finished()
        await bench.recording.checkpoint()
        assert bench.store.load(record.execution_id) == record
        bench.here.files.fail("pread", PACK, errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            bench.store.load(record.execution_id)

    run(work())


@pytest.mark.parametrize(
    "command", ["records list", "records verify", "incomplete", "records show ID", "replay ID"]
)
def test_a_command_finds_the_damage_of_a_short_pack(
    root: Path, ids: list[str], command: str
) -> None:
    (pack,) = (root / "records").iterdir()
    lose_bytes(pack)
    found = invoke(root, *command.replace("ID", ids[1]).split())
    assert found.exit_code == 1
    assert f"{pack.name} ({ids[1]}): its bytes do not have the digest" in found.stderr
