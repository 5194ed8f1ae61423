"""Packs of snapshots that an interrupted checkpoint, or a power cut, has left."""

from __future__ import annotations

import shutil
from pathlib import Path

from system.recording.wal.recovery import read_log
from tests.unit.recording.executions import run
from tests.unit.recording.recording_bench import Bench


def put_back(bench: Bench, saved: Path, path: str) -> None:
    """Restore a file, as a power cut undoes a change of a directory without a barrier."""
    shutil.copy(saved / path, bench.root / path)


async def checkpointed(bench: Bench) -> Path:
    """Leave a checkpoint with one snapshot and no segment; return a copy of the root."""
    await bench.open()
    bench.started(2)
    await bench.recording.close()
    assert bench.names("snapshots") == ["00000001.pack"]
    return Path(
        shutil.copytree(bench.root, bench.root.parent / f"{bench.root.name} saved", symlinks=True)
    )


def test_the_number_of_a_snapshot_is_not_used_again(bench: Bench) -> None:
    async def work() -> None:
        saved = await checkpointed(bench)
        # An interrupted checkpoint: its snapshots are there, and it is not.
        shutil.copy(saved / "snapshots/00000001.pack", saved / "snapshots/00000002.pack")
        put_back(bench, saved, "snapshots/00000002.pack")
        await bench.open()
        assert bench.names("snapshots") == []
        put_back(bench, saved, "snapshots/00000002.pack")
        log = read_log(bench.host.files, bench.host.clock)
        assert not log.executions.all()
        assert log.checkpoint.pack > log.snapshots[0] == 2
        await bench.open()
        assert bench.names("snapshots") == []

    run(work())


def test_an_unused_snapshot_is_removed_after_the_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        saved = await checkpointed(bench)
        shutil.copy(saved / "snapshots/00000001.pack", saved / "snapshots/00000002.pack")
        put_back(bench, saved, "snapshots/00000002.pack")
        bench.here.files.calls.clear()
        await bench.open()
        calls = [each.partition(".tmp")[0] for each in bench.here.files.calls]
        written, removed = calls.index("replace checkpoint"), "unlink snapshots/00000002.pack"
        assert removed in calls[written:]
        assert removed not in calls[:written]

    run(work())


def test_a_snapshot_whose_records_are_written_is_removed(bench: Bench) -> None:
    async def work() -> None:
        saved = await checkpointed(bench)
        await bench.open()
        assert bench.names("records") == ["00000002.pack"]
        # A kill before the checkpoint of that recovery.
        put_back(bench, saved, "checkpoint")
        put_back(bench, saved, "snapshots/00000001.pack")
        await bench.open()
        assert bench.names("snapshots") == []
        assert bench.names("records") == ["00000002.pack"]

    run(work())


def test_removals_are_durable_after_damage_to_the_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await checkpointed(bench)
        (bench.root / "checkpoint").write_text("{")
        bench.here.files.calls.clear()
        await bench.open()
        calls = bench.here.files.calls
        written = [each.partition(".tmp")[0] for each in calls].index("replace checkpoint")
        assert {"sync_dir wal", "sync_dir snapshots"} < set(calls[:written])
        assert [each.path for each in bench.log.report.damaged] == ["checkpoint"]

    run(work())


def test_an_empty_checkpoint_is_damage_and_is_replaced(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        await bench.recording.close()
        (bench.root / "checkpoint").write_text("")
        await bench.open()
        assert [each.path for each in bench.log.report.damaged] == ["checkpoint"]
        assert (bench.root / "checkpoint").read_text()
        await bench.open()
        assert bench.log.report.lost_nothing

    run(work())
