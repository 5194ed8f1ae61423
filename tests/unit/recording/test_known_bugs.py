"""Known bugs of other designs, each shown closed by a short schedule under its name.

Their ids are those of ``docs/planted-bugs.md``.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from system.errors import NotPlainJson, RootInUse, StorageFull
from system.ports import JsonObject, OpenMode
from system.recording.crash_point import detect_incomplete
from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import encoded_log_record, end_of_log_record
from system.recording.records.errors import (
    BarrierFailed,
    EventLost,
    NotReplayableError,
    RecordCorruptedError,
)
from system.recording.records.header import Reason
from system.recording.records.structure import find_problems
from system.recording.replays.replay import replay
from system.recording.replays.replay_cache import CachingReplayEngine, MemoryCache
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal.format import SegmentHeader, encode_entry
from system.root import LOCK, Root
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, finished, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


def segment_of(bench: Bench) -> Path:
    return bench.root / "wal" / SEGMENT


def test_i1_an_execution_of_every_boot_is_readable(bench: Bench) -> None:
    async def work() -> None:
        ids = list[str]()
        for _ in range(3):
            await bench.open()
            ids.append(bench.started(4)[1])
        await bench.open()
        assert [len(bench.store.load(each).events) for each in ids] == [4, 4, 4]
        assert bench.log.report.lost_nothing

    run(work())


def test_i2_a_torn_end_costs_the_entry_that_was_being_written(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        _, execution_id = bench.started(4)
        content = segment_of(bench).read_bytes()
        segment_of(bench).write_bytes(content[:-10])
        await bench.open()
        assert bench.log.report.torn_bytes > 0
        assert len(bench.store.load(execution_id).events) == 3

    run(work())


def test_i3_a_record_that_has_lost_its_last_event_is_damaged(bench: Bench, tmp_path: Path) -> None:
    store, record = FileExecutionStore(bench.host), finished()
    path = tmp_path / store.save(record)
    lines = path.read_bytes().splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if b'"seq":5' in line)
    path.write_bytes(b"".join(lines[:last] + lines[last + 1 :]).replace(b"},\n  ]", b"}\n  ]"))
    with pytest.raises(RecordCorruptedError):
        FileExecutionStore(bench.host).load(record.execution_id)


def test_i5_the_log_goes_on_after_a_failed_barrier(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(1)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        with pytest.raises(BarrierFailed):
            await recorder.barrier()
        with pytest.raises(EventLost):
            recorder.record_event(*EVENTS[1])
        later = await bench.finished()
        await bench.open()
        assert bench.store.load(later.execution_id) == later

    run(work())


def test_i6_a_save_that_fails_keeps_the_record_before_it(bench: Bench) -> None:
    store, record = FileExecutionStore(bench.host), finished()
    store.save(record)
    for call in ("pwrite", "append"):
        bench.here.files.fail(call, "", errno.ENOSPC, sticky=True)
    with pytest.raises(StorageFull):
        store.invalidate(record.execution_id, "wrong", "Ada")
    assert FileExecutionStore(bench.host).load(record.execution_id) == record


def test_i7_a_boot_after_a_boot_is_possible(bench: Bench) -> None:
    async def work() -> None:
        for _ in range(3):
            await bench.open()
            assert bench.log.report.lost_nothing
            await bench.finished()

    run(work())


def test_i8_an_interrupted_execution_is_found_with_its_events(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        _, execution_id = bench.started(3)
        assert not bench.store.load(execution_id).header.replayable
        await bench.open()
        (found,) = detect_incomplete(bench.store).executions
        assert (found.execution_id, found.point.stage) == (execution_id, "during_agent_execution")

    run(work())


def test_i9_a_saved_record_is_durable_with_its_name(bench: Bench) -> None:
    FileExecutionStore(bench.host).save(finished())
    calls = [call for call in bench.here.files.calls if call.split()[0] in ("fsync", "sync_dir")]
    assert calls[-1] == "sync_dir records"
    assert any(call.startswith("fsync ") for call in calls)


def test_i13_a_change_of_the_envelope_does_not_reach_the_record(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        envelope: JsonObject = {"messages": ["one"]}
        recorder = bench.recorder()
        execution_id = recorder.start(envelope)
        envelope["messages"] = []
        assert bench.store.load(execution_id).envelope == {"messages": ["one"]}
        await recorder.finalize({"status": "error"})
        record = bench.store.load(execution_id)
        assert find_problems(record) == ()
        assert record.envelope == {"messages": ["one"]}

    run(work())


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), float("nan"), {2: "two"}],
    ids=["a set", "an object", "not a number", "a key that is a number"],
)
def test_i14_i15_what_json_does_not_have_is_refused_before_the_agent_runs(
    bench: Bench, value: object
) -> None:
    async def work() -> None:
        await bench.open()
        with pytest.raises(NotPlainJson):
            bench.recorder().start({**ENVELOPE, "value": value})
        assert list(bench.store.list_all()) == []

    run(work())


def test_i16_a_change_of_a_result_does_not_reach_the_next_hit(bench: Bench) -> None:
    store, record = FileExecutionStore(bench.host), finished()
    store.save(record)
    engine = CachingReplayEngine(store, MemoryCache(bench.host.clock))
    first = engine.replay(record.execution_id).response
    assert first == RESPONSE
    assert isinstance(first, dict)
    first.clear()
    assert engine.replay(record.execution_id).response == RESPONSE


def test_i17_zeros_in_the_log_are_reported_and_hide_no_entry(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        first, second = await bench.finished(), await bench.finished()
        content = segment_of(bench).read_bytes()
        place = content.index(first.execution_id.encode())
        segment_of(bench).write_bytes(content[:place] + bytes(64) + content[place + 64 :])
        await bench.open()
        assert bench.log.report.damaged
        assert bench.store.load(second.execution_id) == second

    run(work())


def test_i17_stale_an_entry_of_an_earlier_lifetime_is_not_read(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        _, execution_id = bench.started(2)
        stale = encoded_log_record(
            3, b"{}", end_of_log_record(execution_id, "2026-01-01T00:00:00.000000Z")
        )
        entry = encode_entry(EntryType.AGENT_ATTEMPT_START, 4, stale, SegmentHeader(1, 5).crc)
        segment_of(bench).write_bytes(segment_of(bench).read_bytes() + entry)
        await bench.open()
        assert len(bench.store.load(execution_id).events) == 2
        assert bench.log.report.torn_bytes == len(entry)

    run(work())


def test_i18_a_final_response_does_not_remove_the_loss_of_an_event(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(3)
        bench.here.files.fail("append", SEGMENT, errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            recorder.record_event(*EVENTS[3])
        await recorder.finalize(RESPONSE)
        await bench.open()
        header = bench.store.load(execution_id).header
        assert header.replayable_reason == Reason.RECORDING_FAILURE

    run(work())


def test_i19_redo_does_not_bring_an_invalidated_record_back(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        record = await bench.finished()
        bench.store.invalidate(record.execution_id, "wrong", "Ada")
        await bench.open()
        found = bench.store.load(record.execution_id)
        assert found.header.replayable_reason == Reason.MANUALLY_INVALIDATED
        with pytest.raises(NotReplayableError, match="manually_invalidated"):
            replay(bench.store, record.execution_id)

    run(work())


def test_i10_a_root_that_is_released_keeps_its_lock_file(bench: Bench) -> None:
    files, ids = bench.host.files, bench.host.ids
    first = Root.open(files, ids)
    waiter = files.open(LOCK, OpenMode.WRITE)
    with pytest.raises(BlockingIOError):
        waiter.lock()
    first.close()
    newcomer = Root.open(files, ids)
    # Both have locked the same file, so one of them is refused.
    with pytest.raises(BlockingIOError):
        waiter.lock()
    newcomer.close()
    waiter.lock()
    with pytest.raises(RootInUse):
        Root.open(files, ids)
    waiter.close()
