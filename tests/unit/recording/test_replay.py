"""Replay: states and their precedence, forced replays, re-execution."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

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
    ReplayHashMismatchError,
)
from system.recording.records.header import Reason
from system.recording.records.integrity import verify_record_integrity
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import ReplayEngine, replay, verify_envelope
from system.recording.stores.record_file import decode_record
from tests.unit.recording.executions import (
    ENVELOPE,
    EVENTS,
    FAILURE,
    RESPONSE,
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


def test_an_unknown_class_of_effects_counts_as_irreversible() -> None:
    clock, ids, store = memory()
    members: Any = foreign(finished().to_dict())
    members["header"]["sideEffectClass"] = "HARMLESS"
    record = decode_record(json.dumps(members).encode(), "records/x.json")

    async def handler(_: JsonObject) -> JsonObject:
        raise AssertionError

    with pytest.raises(RecorderError, match="pass confirm=True"):
        run(re_execute(record, handler, InMemoryExecutionRecorder(clock, ids, store)))


class Panic(BaseException):
    """An exception of a library that is no ``Exception``."""


@pytest.mark.parametrize("error", [ValueError, Panic])
def test_an_exception_of_the_handler_is_recorded_and_raised(error: type[BaseException]) -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    record = with_side_effects(finished(), SideEffectClass.READ_ONLY)

    async def handler(_: JsonObject) -> JsonObject:
        raise error("lost \udcff")

    with pytest.raises(error, match="lost"):
        run(re_execute(record, handler, recorder))
    (execution_id,) = store.list_all()
    response = store.load(execution_id).final_response
    assert response is not None
    assert response["error"] == {"code": "AGENT_ERROR", "message": r"lost \udcff"}
    assert store.load(execution_id).header.replayable_reason != Reason.EXECUTION_INCOMPLETE


@pytest.mark.parametrize("answer", [None, [1], "text", {"a": float("nan")}, {"a": {1}}, {1: 2}])
def test_an_answer_that_is_no_plain_object_is_recorded_as_an_error(
    bench: Bench, answer: Any
) -> None:
    async def handler(_: JsonObject) -> JsonObject:
        return cast("JsonObject", answer)

    repeated = finished()

    async def work() -> None:
        await bench.open()
        with pytest.raises(NotPlainJson) as refused:
            await re_execute(repeated, handler, bench.recorder(), confirm=True)
        (execution_id,) = bench.store.list_all()
        assert not bench.store.is_running(execution_id)
        record = bench.store.load(execution_id)
        failure = {"code": "AGENT_ERROR", "message": str(refused.value)}
        assert record.final_response == {**FAILURE, "error": failure}
        payload = {"agent": "handler", "attempt": 1, "status": "error", "error": failure}
        assert record.events[3].payload == payload
        assert record.header.replayable

    run(work())


def test_a_handler_that_is_cancelled_is_recorded_as_an_error(bench: Bench) -> None:
    repeated, called = finished(), asyncio.Event()

    async def handler(_: JsonObject) -> JsonObject:
        called.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def work() -> None:
        await bench.open()
        again = re_execute(repeated, handler, bench.recorder(), confirm=True)
        task = asyncio.create_task(again)
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (execution_id,) = bench.store.list_all()
        assert not bench.store.is_running(execution_id)
        response = bench.store.load(execution_id).final_response
        assert response == {**FAILURE, "error": {"code": "CANCELLED", "message": ""}}

    run(work())


def with_side_effects(record: ExecutionRecord, side_effects: SideEffectClass) -> ExecutionRecord:
    return replace(record, header=replace(record.header, side_effects=side_effects)).sealed()
