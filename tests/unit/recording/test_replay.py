"""Replay: states and their precedence, forced replays, the cache, batches, re-execution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from system.errors import NotPlainJson
from system.ports import JsonObject, SideEffectClass
from system.recording.re_execute import re_execute
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.envelope_hash import hash_text
from system.recording.records.errors import (
    NotReplayableError,
    RecordCorruptedError,
    RecorderError,
    RecordNotFoundError,
    ReplayHashMismatchError,
)
from system.recording.records.header import Reason
from system.recording.records.integrity import verify_record_integrity
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import ReplayEngine, batch_replay, replay, verify_envelope
from system.recording.replays.replay_cache import CachingReplayEngine, MemoryCache
from system.recording.replays.replay_result import ReplayResult
from system.recording.stores.memory_store import InMemoryExecutionStore
from system.recording.stores.record_file import encode_record
from tests.unit.recording.executions import (
    ENVELOPE,
    EVENTS,
    FAILURE,
    RESPONSE,
    CountingClock,
    finished,
    memory,
    record_events,
    run,
)
from tests.unit.recording.recording_bench import Bench
from tests.unit.recording.test_record import foreign

FORCED = ("Forced replay of non-replayable record",)


def with_reason(record: ExecutionRecord, reason: str | None) -> ExecutionRecord:
    header = replace(record.header, replayable=reason is None, replayable_reason=reason)
    return replace(record, header=header).sealed()


def incomplete(events: int = 3) -> ExecutionRecord:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    record_events(recorder, EVENTS[:events])
    return store.load(execution_id)


def test_a_replay_returns_the_response_exactly() -> None:
    record = finished()
    result = ReplayEngine(record).replay()
    assert result.response == RESPONSE
    assert (result.payload, result.metadata) == (RESPONSE["payload"], RESPONSE["metadata"])
    assert (result.status, result.error) == ("success", None)
    assert result.from_replay
    assert result.original_execution_id == record.execution_id
    assert result.original_timestamp == record.header.created_utc_iso
    assert result.warnings == ()
    assert result.to_dict()["fromReplay"] is True


@pytest.mark.parametrize(
    ("response", "payload", "metadata", "status"),
    [
        ({"status": "success"}, None, {}, "success"),
        ({"status": "success", "payload": None, "metadata": None}, None, {}, "success"),
        (FAILURE, None, {}, "error"),
    ],
)
def test_a_missing_payload_is_none(
    response: JsonObject, payload: object, metadata: object, status: str
) -> None:
    result = ReplayEngine(finished(response)).replay()
    assert (result.payload, result.metadata, result.status) == (payload, metadata, status)
    assert result.error == response.get("error")
    assert result.response == response


def test_a_result_as_json_has_everything_that_was_recorded() -> None:
    record = finished(FAILURE)
    assert ReplayEngine(with_reason(record, "uses a clock")).replay(force=True).to_dict() == {
        "response": FAILURE,
        "status": "error",
        "payload": None,
        "error": {"code": "AGENT_ERROR", "message": "Failed"},
        "metadata": {},
        "fromReplay": True,
        "originalExecutionId": "exec-0000000000000001",
        "originalTimestamp": "2026-09-21T14:13:20.000000Z",
        "warnings": ["Forced replay of non-replayable record"],
    }
    result = ReplayEngine(finished()).replay().to_dict()
    assert (result["payload"], result["metadata"]) == (RESPONSE["payload"], RESPONSE["metadata"])


def test_a_change_of_a_result_does_not_reach_the_next_access() -> None:
    result = ReplayEngine(finished()).replay()
    metadata: Any = result.metadata
    metadata["provider"] = "another"
    assert result.metadata == RESPONSE["metadata"]


def damaged(record: ExecutionRecord) -> ExecutionRecord:
    return replace(record, events=record.events[:2])


def modified(record: ExecutionRecord) -> ExecutionRecord:
    """A record of another program whose envelope is not the hashed one."""
    header = replace(
        record.header, hash_version=None, record_hash=None, event_count=None, event_chain=None,
        envelope_hash="sha256:" + "0" * 64,
    )  # fmt: skip
    return replace(record, header=header, version=None)


@pytest.mark.parametrize(
    ("record", "reasons"),
    [
        (finished(), ()),
        (incomplete(), ("execution_incomplete",)),
        (with_reason(finished(), "recording_failure"), ("recording_failure",)),
        (with_reason(finished(), "manually_invalidated"), ("manually_invalidated",)),
        (with_reason(finished(), "uses a clock"), ("uses a clock",)),
        (damaged(finished()), ("record_corrupted",)),
        (modified(finished()), ("envelope_invalid",)),
        (
            with_reason(incomplete(), "manually_invalidated"),
            ("execution_incomplete", "manually_invalidated"),
        ),
        (
            damaged(with_reason(finished(), "recording_failure")),
            ("recording_failure", "record_corrupted"),
        ),
        (
            replace(damaged(incomplete()), frozen_envelope=finished(RESPONSE, {}).frozen_envelope),
            ("execution_incomplete", "record_corrupted", "envelope_invalid"),
        ),
    ],
)
def test_precedence_of_the_reasons(record: ExecutionRecord, reasons: tuple[str, ...]) -> None:
    engine = ReplayEngine(record)
    assert engine.is_replayable() == (not reasons, reasons[0] if reasons else None)
    if not reasons:
        assert engine.replay(force=True).warnings == ()
        return
    with pytest.raises(NotReplayableError) as refused:
        engine.replay()
    assert str(refused.value) == refused.value.reason == reasons[0]
    assert refused.value.details == reasons[1:]
    forced = engine.replay(force=True)
    assert forced.warnings == FORCED
    assert forced.response == record.final_response


def test_an_envelope_is_verified_even_when_forced() -> None:
    engine = ReplayEngine(finished())
    routed: JsonObject = {**ENVELOPE, "routingMetadata": {"hop": 2}}
    assert engine.replay(routed).response == RESPONSE
    for force in (False, True):
        with pytest.raises(ReplayHashMismatchError, match="Envelope modified") as mismatch:
            engine.replay({**ENVELOPE, "agent": "Bob"}, force=force)
        assert mismatch.value.recorded == finished().header.envelope_hash
        assert mismatch.value.provided != mismatch.value.recorded
    with pytest.raises(ReplayHashMismatchError):
        ReplayEngine(incomplete()).replay({}, force=True)
    with pytest.raises(NotReplayableError):
        ReplayEngine(incomplete()).replay({})
    with pytest.raises(NotPlainJson):
        engine.replay({"x": float("nan")})


def test_envelopes_are_compared() -> None:
    assert verify_envelope({"a": 1}, {"a": 1, "routingMetadata": 2}).match
    different = verify_envelope({"a": 1}, {"a": 2})
    assert not different.match
    assert different.error == "Envelope modified since original execution"


def test_a_foreign_record_is_verified_by_its_own_function() -> None:
    record = modified(finished())
    whole = finished().frozen_envelope.encoded
    header = replace(record.header, envelope_hash=hash_text(whole))
    engine = ReplayEngine(replace(record, header=header))
    assert engine.replay(ENVELOPE).response == RESPONSE
    with pytest.raises(ReplayHashMismatchError):
        engine.replay({**ENVELOPE, "routingMetadata": {}})


def test_a_corrupted_file_is_replayed_by_force_as_far_as_it_can_be_parsed(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        path = bench.root / bench.store.save(done)
        path.write_bytes(path.read_bytes().replace(b"Hello", b"Hullo", 1))
        store = bench.store
        with pytest.raises(RecordCorruptedError):
            replay(store, done.execution_id)
        forced = replay(store, done.execution_id, force=True)
        assert forced.warnings == FORCED
        path.write_bytes(b"{")
        with pytest.raises(RecordCorruptedError):
            replay(store, done.execution_id, force=True)

    run(work())


def test_a_replay_calls_nothing_but_the_store(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        await bench.recording.checkpoint()
        bench.here.files.calls.clear()
        replay(bench.store, done.execution_id)
        path = "records/00000001.pack"
        # The table is read once.
        assert bench.count("open-read") == 2
        bench.here.files.calls.clear()
        replay(bench.store, done.execution_id)
        assert bench.here.files.calls == [f"open-read {path}", f"pread {path}", f"close {path}"]

    run(work())


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


def test_an_execution_that_is_running_is_not_cached() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    engine = CachingReplayEngine(store, MemoryCache[ReplayResult](clock))
    with pytest.raises(NotReplayableError):
        engine.replay(execution_id)


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


def test_integrity_of_a_record() -> None:
    report = verify_record_integrity(finished())
    assert report.is_sound
    assert (report.coverage, report.unknown_types) == ("record", ())
    assert report.function is not None
    assert verify_record_integrity(modified(finished())).coverage == "envelope only"
    assert not verify_record_integrity(damaged(finished())).is_sound
    assert foreign(finished().to_dict()) is not None


# -- execution again -----------------------------------------------------------------------


def test_an_execution_is_repeated_by_a_handler_as_a_new_record() -> None:
    clock, ids, store = memory()
    ids.last = 99

    async def handler(envelope: JsonObject) -> JsonObject:
        assert envelope == ENVELOPE
        return FAILURE

    recorder = InMemoryExecutionRecorder(clock, ids, store)
    with pytest.raises(RecorderError, match="pass confirm=True"):
        run(re_execute(finished(), handler, recorder))
    again = run(re_execute(finished(), handler, recorder, confirm=True))
    assert again is not None
    assert again.header.re_execution_of == finished().execution_id
    assert again.final_response == FAILURE
    assert again.header.envelope_hash == finished().header.envelope_hash


def test_a_response_that_says_irreversible_outweighs_the_header() -> None:
    clock, ids, store = memory()
    response = {**RESPONSE, "metadata": {"sideEffectClass": "IRREVERSIBLE"}}
    record = with_side_effects(finished(response=response), SideEffectClass.REVERSIBLE)

    async def handler(_: JsonObject) -> JsonObject:
        raise AssertionError

    with pytest.raises(RecorderError, match="pass confirm=True"):
        run(re_execute(record, handler, InMemoryExecutionRecorder(clock, ids, store)))


def test_an_exception_of_the_handler_is_recorded_and_raised() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    record = with_side_effects(finished(), SideEffectClass.READ_ONLY)

    async def handler(_: JsonObject) -> JsonObject:
        raise KeyError("lost")

    with pytest.raises(KeyError):
        run(re_execute(record, handler, recorder))
    (execution_id,) = store.list_all()
    response = store.load(execution_id).final_response
    assert response is not None
    assert response["error"] == {"code": "AGENT_ERROR", "message": "'lost'"}
    assert store.load(execution_id).header.replayable_reason != Reason.EXECUTION_INCOMPLETE


def with_side_effects(record: ExecutionRecord, side_effects: SideEffectClass) -> ExecutionRecord:
    return replace(record, header=replace(record.header, side_effects=side_effects)).sealed()
