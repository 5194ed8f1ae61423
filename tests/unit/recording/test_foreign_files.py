"""Directories, pipes and links with the names of files of a recording."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from system.host import RealFileSystem, real_host
from system.recording.offline_store import OfflineRecords
from system.recording.records.errors import ForeignRecordFile
from system.recording.stores.file_store import FileExecutionStore
from tests.unit.recording.executions import EVENTS, record_events, run
from tests.unit.recording.recording_bench import Bench

MOVE: Final = "it is not a regular file, and was left; move it out of the directory"

PATHS: Final = [
    "wal/00000000.wal", "wal/00000007.wal", "snapshots/00000001.pack", "snapshots/00000007.pack",
]  # fmt: skip


def make_directory(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_directory(path: Path) -> None:
    path.symlink_to(".")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


make_foreign = pytest.mark.parametrize(
    "make", [make_directory, make_pipe, link_to_directory, link_to_nothing, link_to_itself]
)


async def killed(bench: Bench) -> list[str]:
    """Leave a root without a checkpoint, and two executions in its log; return their ids."""
    await bench.open()
    record = await bench.finished()
    recorder, execution_id = bench.started(2)
    await recorder.barrier()
    return sorted([record.execution_id, execution_id])


def records_in(root: Path) -> OfflineRecords:
    return OfflineRecords(real_host(str(root)))


@pytest.mark.parametrize("path", PATHS)
@make_foreign
def test_a_foreign_file_of_the_log_is_reported_and_left(
    bench: Bench, path: str, make: Callable[[Path], None]
) -> None:
    async def work() -> None:
        ids = await killed(bench)
        make(bench.root / path)
        found = records_in(bench.root)
        assert list(found.log_problems()) == [f"{path}: {MOVE}"]
        assert [found.load(each).execution_id for each in ids] == ids
        await bench.open()
        assert bench.log.report.findings == [f"{path}: {MOVE}"]
        assert Path(path).name in bench.names(path.partition("/")[0])
        assert [bench.store.load(each).execution_id for each in ids] == ids
        # Neither a segment nor a pack is written in its place.
        await bench.finished()
        await bench.recording.close()
        await bench.open()
        assert len(list(bench.store.list_all())) == len(ids) + 1

    run(work())


def test_numbers_after_99999999_have_nine_digits(bench: Bench) -> None:
    async def work() -> None:
        ids = await killed(bench)
        (bench.root / "wal/99999999.wal").touch()
        (bench.root / "snapshots/99999999.pack").mkdir()
        await bench.open()
        assert bench.names("records") == ["100000000.pack"]
        _, running = bench.started(2)
        ids.append((await bench.finished()).execution_id)
        assert "100000000.wal" in bench.names("wal")
        found = records_in(bench.root)
        assert [found.load(each).execution_id for each in ids] == ids
        await bench.recording.checkpoint()
        assert "100000001.pack" in bench.names("snapshots")
        await bench.open()
        ids.append(running)
        assert [bench.store.load(each).execution_id for each in ids] == ids
        assert bench.names("wal") == []
        assert bench.log.report.findings == [f"snapshots/99999999.pack: {MOVE}"]

    run(work())


@pytest.mark.parametrize("number", [99_999_999, 1])
def test_without_a_checkpoint_the_newer_snapshot_is_used(bench: Bench, number: int) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(1)
        for directory, events in (("earlier", EVENTS[:0]), ("later", EVENTS[1:2])):
            record_events(recorder, events)
            bench.host.files.mkdir(directory)
            view = bench.recording.running[execution_id].view()
            FileExecutionStore(bench.host, directory).write_pack(1, [view])
        for directory, name in (("earlier", number), ("later", number + 1)):
            path = bench.root / "snapshots" / f"{name:08d}.pack"
            (bench.root / directory / "00000001.pack").rename(path)
        (bench.root / "wal/00000001.wal").unlink()
        assert len(OfflineRecords(bench.host).load(execution_id).events) == 2

    run(work())


def test_a_foreign_segment_before_the_checkpoint_keeps_no_other_one(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        await bench.recording.close()
        (bench.root / "wal/00000001.wal").mkdir()
        await bench.open(segment_bytes=100)
        for _ in range(3):
            await bench.finished()
        await bench.recording.checkpoint()
        assert not bench.recording.is_checkpoint_due
        await bench.recording.close()
        assert bench.names("wal") == ["00000001.wal"]
        await bench.open()
        assert bench.log.report.findings == [f"wal/00000001.wal: {MOVE}"]

    run(work())


def test_a_file_that_its_owner_removes_while_it_is_read_is_not_foreign(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        bench.started(2)
        await bench.recording.close()
        # Listed, and not there: as a removal between the two calls.
        removed = {"wal": ["00000001.wal"], "snapshots": ["00000000.pack"]}
        listdir = RealFileSystem.listdir
        monkeypatch.setattr(
            RealFileSystem,
            "listdir",
            lambda files, path: sorted([*listdir(files, path), *removed.get(path, ())]),
        )
        assert not list(records_in(bench.root).log_problems())

    run(work())


@make_foreign
@pytest.mark.parametrize("number", [1, 7])
def test_a_foreign_pack_of_records_does_not_replace_the_log(
    bench: Bench, number: int, make: Callable[[Path], None]
) -> None:
    async def work() -> None:
        ids = await killed(bench)
        make(bench.root / "records" / f"{number:08d}.pack")
        assert [records_in(bench.root).load(each).execution_id for each in ids] == ids
        await bench.open()
        assert [bench.store.load(each).execution_id for each in ids] == ids

    run(work())


@pytest.mark.parametrize("path", ["records/00000001.pack", "snapshots/00000001.pack"])
def test_a_foreign_file_in_the_place_of_a_pack_is_a_missing_pack(bench: Bench, path: str) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        bench.started(2)
        await bench.recording.close()
        (bench.root / path).unlink()
        (bench.root / path).mkdir()
        await bench.open()
        assert list(bench.log.missing_paths) == [path]
        await bench.open()
        assert not bench.log.missing_paths

    run(work())


@make_foreign
def test_a_checkpoint_that_is_no_regular_file_is_refused(
    bench: Bench, make: Callable[[Path], None]
) -> None:
    async def work() -> None:
        await killed(bench)
        make(bench.root / "checkpoint")
        sentence = "checkpoint: it is not a regular file; move it out of the store"
        with pytest.raises(ForeignRecordFile, match=sentence):
            records_in(bench.root)
        with pytest.raises(ForeignRecordFile, match=sentence):
            await bench.open()

    run(work())


def test_a_directory_with_the_name_of_a_temporary_file_is_left(bench: Bench) -> None:
    async def work() -> None:
        ids = await killed(bench)
        (bench.root / "snapshots/00000001.pack.tmp.0123abcd").mkdir()
        await bench.open()
        assert bench.log.report.swept == []
        assert list(bench.store.list_all()) == ids

    run(work())


@pytest.mark.parametrize("make", [Path.touch, link_to_nothing])
@pytest.mark.parametrize("name", ["records", "snapshots", "wal"])
def test_a_directory_of_the_recording_that_is_none_is_refused(
    bench: Bench, name: str, make: Callable[[Path], None]
) -> None:
    async def work() -> None:
        make(bench.root / name)
        sentence = f"{name}: it is not a directory; move it out of the store"
        with pytest.raises(ForeignRecordFile, match=sentence):
            records_in(bench.root)
        with pytest.raises(ForeignRecordFile, match=sentence):
            await bench.open()

    run(work())


@make_foreign
def test_a_directory_with_the_name_of_a_record_does_not_replace_the_log(
    bench: Bench, make: Callable[[Path], None]
) -> None:
    async def work() -> None:
        ids = await killed(bench)
        path = bench.root / "records" / f"{ids[0]}.json"
        make(path)
        await bench.open()
        with pytest.raises(ForeignRecordFile, match="it is not a regular file"):
            bench.store.load(ids[0])
        path.rmdir() if make is make_directory else path.unlink()
        assert bench.store.load(ids[0]).execution_id == ids[0]

    run(work())
