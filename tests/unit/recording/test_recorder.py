"""The states of a recorder, the order of events, and the record that they make."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from system.errors import NotPlainJson
from system.host import RealIds
from system.ports import SideEffectClass
from system.recording.executions.execution import Execution
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.envelope_hash import FrozenEnvelope, compute_envelope_hash
from system.recording.records.errors import RecorderError, RecordNotFoundError
from system.recording.records.event import EventType
from system.recording.records.execution_id import is_execution_id, is_sampled, new_execution_id
from system.recording.records.header import Reason
from system.recording.records.status import ExecutionStatus, status_of
from system.recording.records.structure import find_problems
from system.recording.stores.memory_store import InMemoryExecutionStore
from tests.sample import Sample
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


def started(events: int = 0) -> InMemoryExecutionRecorder:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    recorder.start(ENVELOPE)
    record_events(recorder, EVENTS[:events])
    return recorder


def test_a_finished_record_is_complete_and_replayable() -> None:
    record = finished()
    assert find_problems(record) == ()
    assert record.header.execution_id == "exec-0000000000000001"
    assert record.header.created_utc_iso == "2026-09-21T14:13:20.000000Z"
    assert (record.header.replayable, record.header.replayable_reason) == (True, None)
    assert record.header.side_effects == "IRREVERSIBLE"
    assert record.envelope == ENVELOPE
    assert record.final_response == RESPONSE
    assert record.router_decision == EVENTS[1][1]
    assert [event.seq for event in record.events] == [1, 2, 3, 4, 5]
    assert [event.type for event in record.events][-1] is EventType.FINAL_RESPONSE
    assert status_of(record) is ExecutionStatus.COMPLETED


def test_an_error_response_is_recorded_like_any_other() -> None:
    record = finished(FAILURE)
    assert record.final_response == FAILURE
    assert status_of(record) is ExecutionStatus.COMPLETED


def test_a_started_execution_is_in_the_store_as_incomplete() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE, SideEffectClass.READ_ONLY)
    record_events(recorder, EVENTS[:3])
    record = store.load(execution_id)
    assert (record.header.replayable, record.header.replayable_reason) == (
        False,
        Reason.EXECUTION_INCOMPLETE,
    )
    assert len(record.events) == 3
    assert find_problems(record) == ()
    assert status_of(record, is_running=store.is_running(execution_id)) is ExecutionStatus.RUNNING
    assert status_of(record) is ExecutionStatus.INCOMPLETE
    assert list(store.list_all()) == [execution_id]
    assert store.find_by_hash(record.header.envelope_hash) == [execution_id]
    assert store.find_by_hash("sha256:0") == []
    assert store.hash_of(execution_id) is None
    finalized = run(recorder.finalize(RESPONSE))
    assert finalized is not None
    assert store.load(execution_id) == finalized
    assert store.hash_of(execution_id) == finalized.header.record_hash
    assert not store.is_running(execution_id)


def test_equal_requests_are_found_whether_they_run_or_have_ended() -> None:
    clock, ids, store = memory()
    found = list[str]()
    for events in (4, 4, 1, 1):
        recorder = InMemoryExecutionRecorder(clock, ids, store)
        found.append(recorder.start(ENVELOPE))
        record_events(recorder, EVENTS[:events])
        if events == 4:
            run(recorder.finalize(RESPONSE))
    InMemoryExecutionRecorder(clock, ids, store).start({"another": 1})
    assert store.find_by_hash(compute_envelope_hash(ENVELOPE)) == found


def test_the_log_record_of_a_start_has_a_header_that_is_not_replayable() -> None:
    envelope = FrozenEnvelope.of({"b": 1, "a": 2})
    for of_another in (None, "exec-" + "2" * 16):
        execution = Execution.new(
            CountingClock(), "exec-" + "1" * 16, envelope, SideEffectClass.READ_ONLY, of_another
        )
        (start,) = (record.parsed() for record in execution.log_records.recent)
        assert start is not None
        header = {
            "createdUtcIso": "2026-09-21T14:13:20.000000Z",
            "envelopeHash": envelope.hash,
            "executionId": "exec-1111111111111111",
            "hashVersion": 2,
            "reExecutionOf": of_another,
            "replayable": False,
            "replayableReason": "execution_incomplete",
            "sideEffectClass": "READ_ONLY",
        }
        if of_another is None:
            del header["reExecutionOf"]
        written = {"envelope": {"a": 2, "b": 1}, "header": header}
        assert start.payload == json.dumps(written, separators=(",", ":")).encode()


def test_the_envelope_is_kept_as_it_was_at_start() -> None:
    envelope = {"messages": ["one"]}
    recorder = InMemoryExecutionRecorder(*memory())
    recorder.start(envelope)
    envelope["messages"].append("two")
    record_events(recorder)
    record = run(recorder.finalize(RESPONSE))
    assert record is not None
    assert record.envelope == {"messages": ["one"]}
    assert find_problems(record) == ()


def test_a_recorder_starts_once() -> None:
    with pytest.raises(RecorderError, match="Cannot start twice"):
        started().start(ENVELOPE)


def test_nothing_is_recorded_before_start() -> None:
    recorder = InMemoryExecutionRecorder(*memory())
    with pytest.raises(RecorderError, match="Cannot record before start"):
        recorder.record_event(*EVENTS[0])
    with pytest.raises(RecorderError, match="Cannot record before start"):
        run(recorder.finalize(RESPONSE))
    recorder.mark_not_replayable("no-op")
    run(recorder.barrier())


def test_nothing_is_recorded_after_finalize() -> None:
    recorder = started(4)
    run(recorder.finalize(RESPONSE))
    calls: tuple[Callable[[], object], ...] = (
        lambda: recorder.record_event(*EVENTS[0]),
        lambda: run(recorder.finalize(RESPONSE)),
        lambda: recorder.complete(RESPONSE),
        lambda: recorder.mark_not_replayable("late"),
    )
    for call in calls:
        with pytest.raises(RecorderError, match="Cannot record after finalization"):
            call()


def test_a_reason_that_was_marked_stays() -> None:
    recorder = started(4)
    recorder.mark_not_replayable("uses a clock")
    record = run(recorder.finalize(RESPONSE))
    assert record is not None
    assert (record.header.replayable, record.header.replayable_reason) == (False, "uses a clock")
    assert find_problems(record) == ()


def test_an_empty_reason_is_refused() -> None:
    with pytest.raises(RecorderError, match="give a text"):
        started().mark_not_replayable("")


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_that_a_recorder_sets_itself_is_refused(reason: str) -> None:
    recorder = started(len(EVENTS))
    with pytest.raises(RecorderError, match="which a recorder sets itself"):
        recorder.mark_not_replayable(str(reason))
    record = recorder.complete(RESPONSE)
    assert record is not None
    assert record.header.replayable


@pytest.mark.parametrize(
    ("events", "following"),
    [
        (0, EventType.ROUTER_DECISION),
        (1, EventType.AGENT_ATTEMPT_START),
        (1, EventType.INTENT_RECEIVED),
        (2, EventType.AGENT_ATTEMPT_END),
        (3, EventType.FALLBACK_TRIGGERED),
        (4, EventType.AGENT_ATTEMPT_START),
        (4, EventType.AGENT_ATTEMPT_END),
    ],
)
def test_an_event_out_of_order_is_refused(events: int, following: EventType) -> None:
    recorder = started(events)
    with pytest.raises(RecorderError, match=f"{following} cannot"):
        recorder.record_event(following, {})


def test_a_fallback_leads_to_another_attempt() -> None:
    recorder = started(4)
    recorder.record_event(EventType.FALLBACK_TRIGGERED, {"from": "a", "to": "b"})
    recorder.record_event(EventType.AGENT_ATTEMPT_START, {"agent": "b", "attempt": 2})
    record = run(recorder.finalize(RESPONSE))
    assert record is not None
    assert find_problems(record) == ()


@pytest.mark.parametrize("events", range(5))
def test_an_error_response_may_follow_any_event(events: int) -> None:
    record = run(started(events).finalize(FAILURE))
    assert record is not None
    assert find_problems(record) == ()


def test_a_success_needs_an_attempt() -> None:
    with pytest.raises(RecorderError, match="FINAL_RESPONSE cannot follow ROUTER_DECISION"):
        run(started(2).finalize(RESPONSE))


def test_an_unknown_type_and_a_final_response_are_no_events_to_record() -> None:
    recorder = started(4)
    with pytest.raises(RecorderError, match="unknown type 'NEWS'"):
        recorder.record_event(cast("EventType", "NEWS"), {})
    with pytest.raises(RecorderError, match="finalize does"):
        recorder.record_event(EventType.FINAL_RESPONSE, RESPONSE)


def test_a_value_that_is_not_plain_changes_nothing() -> None:
    recorder = started(2)
    with pytest.raises(NotPlainJson):
        recorder.record_event(EventType.AGENT_ATTEMPT_START, {"x": object()})
    record_events(recorder, EVENTS[2:])
    with pytest.raises(NotPlainJson):
        run(recorder.finalize(["no object"]))
    record = run(recorder.finalize(RESPONSE))
    assert record is not None
    assert find_problems(record) == ()


def test_an_id_that_is_taken_is_not_used_again() -> None:
    clock, ids, store = memory()
    first = InMemoryExecutionRecorder(clock, ids, store).start(ENVELOPE)
    ids.planned = [first.removeprefix("exec-")]
    assert InMemoryExecutionRecorder(clock, ids, store).start(ENVELOPE) != first


def test_ids_have_their_form_and_do_not_repeat(sample: Sample) -> None:
    random, numbers = RealIds(), sample(range(1_000_000), 150_000)
    ids = {new_execution_id(random, lambda _: False) for _ in numbers}
    assert len(ids) == len(numbers)
    assert all(map(is_execution_id, ids))
    longer = "exec-" + "a" * 17, "exec-" + "a" * 16 + "\n"
    for wrong in ("exec-1234", "exec-" + "A" * 16, "exec-" + "a" * 15 + "/", "", None, 1, *longer):
        assert not is_execution_id(wrong)


@pytest.mark.parametrize(
    ("digits", "rate", "expected"),
    [
        ("00000000", 0.0, False),
        ("00000000", 0.000001, True),
        ("7fffffff", 0.5, True),
        ("80000000", 0.5, False),
        ("ffffffff", 1.0, True),
    ],
)
def test_sampling_depends_on_the_id_alone(digits: str, rate: float, expected: bool) -> None:
    assert is_sampled(f"exec-{digits}ffffffff", rate) is expected


def test_a_recorder_samples_at_its_rate() -> None:
    for digits, rate, is_recorded in (("e" * 16, 0.9, False), ("e" * 16, 0.95, True)):
        clock, ids, store = memory()
        ids.planned = [digits]
        InMemoryExecutionRecorder(clock, ids, store, sample_rate=rate).start(ENVELOPE)
        assert bool(list(store.list_all())) == is_recorded


def test_an_execution_that_is_sampled_out_leaves_nothing() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store, sample_rate=0.0)
    execution_id = recorder.start(ENVELOPE)
    record_events(recorder)
    recorder.mark_not_replayable("x")
    recorder.complete(RESPONSE)
    assert run(recorder.finalize(RESPONSE)) is None
    assert list(store.list_all()) == []
    with pytest.raises(RecordNotFoundError, match="there is no record"):
        store.load(execution_id)
    with pytest.raises(RecorderError, match="Cannot start twice"):
        recorder.start(ENVELOPE)


def test_the_clock_of_events_may_step_back() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    recorder.start(ENVELOPE)
    for event_type, payload in EVENTS:
        clock.now_ns -= 10**12
        recorder.record_event(event_type, payload)
    record = run(recorder.finalize(RESPONSE))
    assert record is not None
    assert [event.seq for event in record.events] == [1, 2, 3, 4, 5]
    assert [event.timestamp for event in record.events] == [
        "2026-09-21T13:56:40.000000Z", "2026-09-21T13:40:00.000000Z",
        "2026-09-21T13:23:20.000000Z", "2026-09-21T13:06:40.000000Z",
        "2026-09-21T13:06:40.000000Z",
    ]  # fmt: skip
    # Equality ignores the times of events; the hash does not.
    assert record.events == finished().events
    assert record.header.record_hash != finished().header.record_hash


@pytest.mark.parametrize("repeated", [5, b"exec-1", "", ["exec-1"]])
def test_an_execution_repeats_one_whose_id_is_a_text(repeated: Any) -> None:
    recorder = InMemoryExecutionRecorder(*memory())
    with pytest.raises(RecorderError, match="give the id as a text"):
        recorder.start(ENVELOPE, re_execution_of=repeated)
    assert is_execution_id(recorder.start(ENVELOPE, re_execution_of="exec-1"))


def test_a_default_store_is_made() -> None:
    recorder = InMemoryExecutionRecorder(CountingClock(), RealIds())
    assert is_execution_id(recorder.start(ENVELOPE))


def test_an_invalidated_record_stays_invalid() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    with pytest.raises(RecorderError, match="it is running"):
        store.invalidate(execution_id, "wrong answer", "Ada")
    with pytest.raises(RecorderError, match="it is running"):
        store.save(store.load(execution_id))
    record_events(recorder)
    run(recorder.finalize(RESPONSE))
    before = store.hash_of(execution_id)
    for reason, by in (("", "Ada"), ("wrong answer", "")):
        with pytest.raises(RecorderError, match="Cannot invalidate"):
            store.invalidate(execution_id, reason, by)
    record = store.invalidate(execution_id, "wrong answer", "Ada")
    assert record.header.replayable_reason == Reason.MANUALLY_INVALIDATED
    assert record.header.to_dict()["invalidation"] == {
        "reason": "wrong answer", "by": "Ada", "utcIso": "2026-09-21T14:13:20.000000Z",
    }  # fmt: skip
    assert store.hash_of(execution_id) not in {None, before}
    assert status_of(record) is ExecutionStatus.INVALIDATED
    assert store.invalidate(execution_id, "again", "Bob") == record


def test_an_invalidation_keeps_the_earlier_reason() -> None:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    record_events(recorder)
    recorder.mark_not_replayable("uses a clock")
    run(recorder.finalize(RESPONSE))
    record = store.invalidate(execution_id, "wrong", "Ada")
    assert record.header.invalidation is not None
    assert record.header.invalidation.earlier == "uses a clock"
    assert isinstance(store, InMemoryExecutionStore)
