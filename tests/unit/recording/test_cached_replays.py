"""Replays from a cache, and batches of replays."""

from __future__ import annotations

from dataclasses import replace
from weakref import ref

import pytest

from system.recording.executions.execution import ExecutionView
from system.recording.executions.log_record_list import MOST_BYTES
from system.recording.open_recording import open_recording
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.errors import NotReplayableError, RecordNotFoundError
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import batch_replay
from system.recording.replays.replay_cache import CachingReplayEngine, MemoryCache
from system.recording.replays.replay_result import ReplayResult
from system.recording.stores.memory_store import InMemoryExecutionStore
from system.recording.stores.record_file import encode_record
from system.recording.wal_store import WalExecutionStore
from tests.unit.recording.executions import (
    ENVELOPE,
    RESPONSE,
    CountingClock,
    finished,
    memory,
    run,
)
from tests.unit.recording.recording_bench import Bench

# -- the cache -----------------------------------------------------------------------------


class SpyStore(InMemoryExecutionStore):
    """A store that counts its loads."""

    loads = 0

    def load(self, execution_id: str) -> ExecutionRecord:
        self.loads += 1
        return super().load(execution_id)


class JumpingClock(CountingClock):
    """A clock whose wall time is set forward by a day at each look."""

    days = 0

    def wall_ns(self) -> int:
        self.days += 1
        return self.now_ns + self.days * 86_400 * 10**9


def cached() -> tuple[CachingReplayEngine, SpyStore, CountingClock, str]:
    clock = JumpingClock()
    store = SpyStore(clock)
    record = finished()
    store.save(record)
    cache = MemoryCache[ReplayResult](clock)
    return CachingReplayEngine(store, cache), store, clock, record.execution_id


def test_a_hit_reads_nothing_until_an_hour_has_passed() -> None:
    engine, store, clock, execution_id = cached()
    first = engine.replay(execution_id)
    assert engine.replay(execution_id) is first
    assert store.loads == 1
    clock.now_ns += 3600 * 10**9 - 1
    engine.replay(execution_id)
    assert store.loads == 1
    clock.now_ns += 1
    engine.replay(execution_id)
    assert store.loads == 2


@pytest.mark.parametrize("through_the_engine", [True, False])
def test_an_invalidated_record_is_not_served_from_the_cache(through_the_engine: bool) -> None:
    engine, store, _, execution_id = cached()
    engine.replay(execution_id)
    (engine if through_the_engine else store).invalidate(execution_id, "wrong", "Ada")
    with pytest.raises(NotReplayableError, match="manually_invalidated"):
        engine.replay(execution_id)


def test_an_invalidation_removes_the_replay_from_the_cache() -> None:
    clock = CountingClock()
    store, deleted = SpyStore(clock), list[object]()
    store.save(finished())

    class Spy(MemoryCache[ReplayResult]):
        def delete(self, key: object) -> None:
            deleted.append(key)
            super().delete(key)

    engine, execution_id = CachingReplayEngine(store, Spy(clock)), finished().execution_id
    engine.replay(execution_id)
    engine.invalidate(execution_id, "wrong", "Ada")
    assert deleted == [(execution_id, finished().header.record_hash)]


class Value:
    """A value to which a weak reference may refer."""


def test_a_value_that_is_not_asked_for_again_goes_when_its_time_is_over() -> None:
    clock = CountingClock()
    cache = MemoryCache[Value](clock)
    values = {name: Value() for name in "abc"}
    kept = {name: ref(value) for name, value in values.items()}
    for name in "aba":
        cache.set(name, values[name], 10.0)
        clock.now_ns += 4 * 10**9
    values.clear()
    # Ten seconds are over since the call for ``b``, but not since the second one for ``a``.
    clock.now_ns += 3 * 10**9
    cache.set("c", Value(), 10.0)
    assert [name for name in "ab" if kept[name]() is not None] == ["a"]


def test_an_execution_that_is_running_is_not_cached() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    engine = CachingReplayEngine(store, MemoryCache[ReplayResult](clock))
    with pytest.raises(NotReplayableError):
        engine.replay(execution_id)


@pytest.mark.parametrize("most_bytes", [MOST_BYTES, 100], ids=["in memory", "in a spool"])
def test_a_hit_does_not_compute_the_record_of_an_execution_that_waits_for_its_checkpoint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    async def work() -> None:
        bench.recording, _ = await open_recording(bench.host, most_bytes=most_bytes)
        bench.store = WalExecutionStore(bench.recording, bench.host.clock)
        execution_id = (await bench.finished()).execution_id
        assert bench.recording.waiting[execution_id].is_long == (most_bytes < MOST_BYTES)
        engine = CachingReplayEngine(bench.store, MemoryCache[ReplayResult](bench.host.clock))
        first = engine.replay(execution_id)
        with monkeypatch.context() as patch:
            patch.setattr(ExecutionView, "record", None)
            bench.here.files.calls.clear()
            assert engine.replay(execution_id) is first
            assert bench.here.files.calls == []
            await bench.recording.checkpoint()
            bench.here.files.calls.clear()
            assert engine.replay(execution_id) is first
            assert bench.here.files.calls == []
        engine.invalidate(execution_id, "wrong", "Ada")
        with pytest.raises(NotReplayableError, match="manually_invalidated"):
            engine.replay(execution_id)

    run(work())


# -- batches -------------------------------------------------------------------------------


def test_one_bad_id_never_fails_a_batch(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        broken = await bench.finished()
        newer = await bench.finished()
        unreadable = await bench.finished()
        _, running = bench.started(2)
        for each in (broken, newer, unreadable):
            bench.store.save(each)
        await bench.recording.checkpoint()
        records = bench.root / "records"
        (records / f"{broken.execution_id}.json").write_bytes(b"{}")
        text = encode_record(replace(newer, version=2).sealed())
        (records / f"{newer.execution_id}.json").write_bytes(text)
        bench.here.files.fail("open-read", f"{unreadable.execution_id}.json", 5)
        unknown = "exec-" + "0" * 16
        ids = [
            unknown, done.execution_id, broken.execution_id, newer.execution_id,
            unreadable.execution_id, running, unknown,
        ]  # fmt: skip
        results = batch_replay(bench.store, ids)
        assert list(results) == ids[:-1]
        codes = [result.metadata.get("error") for result in results.values()]
        assert codes == [
            "record_not_found", None, "record_corrupted", "newer_format", "io_error",
            "execution_incomplete",
        ]  # fmt: skip
        failed = results[unknown]
        assert isinstance(failed.failure, RecordNotFoundError)
        assert failed.warnings == ("Not replayable: record_not_found",)
        assert (failed.payload, failed.original_timestamp, failed.from_replay) == (None, None, True)
        assert results[done.execution_id].response == RESPONSE

    run(work())


def test_an_id_that_a_batch_has_twice_is_read_once() -> None:
    _, store, _, execution_id = cached()
    assert list(batch_replay(store, [execution_id] * 2)) == [execution_id]
    assert store.loads == 1
