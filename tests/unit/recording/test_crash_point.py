"""The stages of interrupted executions, and the list of them."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from system.ports import Json, SideEffectClass
from system.recording.crash_point import analyze_crash_point, detect_incomplete
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.event import EventType
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import ExecutionRecord
from system.recording.records.status import ExecutionStatus, status_of
from system.recording.stores.memory_store import InMemoryExecutionStore
from system.recording.stores.record_file import encode_record
from tests.unit.recording.executions import ENVELOPE, EVENTS, finished, memory, record_events, run
from tests.unit.recording.recording_bench import Bench

AGENT = "a" * 32


def after(*events: tuple[str, Json], side_effects: SideEffectClass | None) -> ExecutionRecord:
    """A record whose last events are these."""
    template = finished()
    made = tuple(
        replace(template.events[0], seq=seq, type=event_type, frozen_payload=FrozenJson.of(payload))
        for seq, (event_type, payload) in enumerate(events, 1)
    )
    header = replace(template.header, side_effects=side_effects)
    return replace(template, header=header, events=made, frozen_response=None)


STAGES = [
    ([], "before_start", "safe_to_retry", "retry", None),
    (["INTENT_RECEIVED"], "after_receive", "safe_to_retry", "retry", None),
    (["ROUTER_DECISION"], "after_routing", "safe_to_retry", "retry", AGENT),
    (["AGENT_ATTEMPT_START"], "during_agent_execution", "check_agent_idempotency", "confirm",
     AGENT),
    (["AGENT_ATTEMPT_END success"], "after_success", "response_may_be_lost", "confirm", AGENT),
    (["AGENT_ATTEMPT_END error"], "after_failure", "retry_next_agent", "confirm", AGENT),
    (["AGENT_ATTEMPT_END"], "after_failure", "retry_next_agent", "confirm", AGENT),
    (["FALLBACK_TRIGGERED"], "during_fallback", "retry_next_agent", "confirm", AGENT),
    (["FINAL_RESPONSE"], "after_final_response", "replay", "none", AGENT),
    (["NEWS"], "unknown", "manual_inspection", "confirm", AGENT),
]  # fmt: skip


@pytest.mark.parametrize(("events", "stage", "recovery", "action", "agent"), STAGES)
@pytest.mark.parametrize("side_effects", [None, *SideEffectClass])
def test_the_stage_follows_from_the_last_event(
    events: list[str], stage: str, recovery: str, action: str, agent: str | None,
    side_effects: SideEffectClass | None,
) -> None:  # fmt: skip
    made: list[tuple[str, Json]] = []
    for event in events:
        name, _, status = event.partition(" ")
        payload: dict[str, Json] = {"agent": AGENT, "status": status} if status else {
            "agent": AGENT
        }  # fmt: skip
        made.append((name, {} if name == "INTENT_RECEIVED" else payload))
    point = analyze_crash_point(after(*made, side_effects=side_effects))
    assert (point.stage, point.recovery, point.agent) == (stage, recovery, agent)
    is_harmless = side_effects in {SideEffectClass.READ_ONLY, SideEffectClass.REVERSIBLE}
    if action == "confirm" and is_harmless and stage != "unknown":
        action = "retry"
    assert point.action == action


def test_a_payload_that_is_no_object_names_no_agent() -> None:
    record = after((EventType.AGENT_ATTEMPT_START, [1]), side_effects=None)
    assert analyze_crash_point(record).agent is None


def test_incomplete_executions_are_found_and_retried_ones_say_so() -> None:
    clock, ids, store = memory()
    lost = InMemoryExecutionRecorder(clock, ids, store).start(ENVELOPE)
    done = InMemoryExecutionRecorder(clock, ids, store)
    done.start(ENVELOPE)
    decision: Json = {"agent": AGENT, "retryOf": lost}
    record_events(done, [EVENTS[0], (EVENTS[1][0], decision), *EVENTS[2:]])
    record = run(done.finalize({"status": "success"}))
    assert record is not None
    # The lost one is running in its store, but not in a copy of it.
    assert detect_incomplete(store).executions == ()
    copy = InMemoryExecutionStore(clock)
    for execution_id in store.list_all():
        copy.save(store.load(execution_id))
    report = detect_incomplete(copy)
    assert [each.execution_id for each in report.executions] == [lost]
    assert report.executions[0].retried_by == record.execution_id
    assert report.executions[0].point.stage == "before_start"
    assert report.unreadable == ()


@pytest.mark.parametrize("events", range(5))
def test_an_execution_that_is_running_is_not_interrupted(bench: Bench, events: int) -> None:
    async def work() -> None:
        await bench.open()
        first = bench.started(3)[1]
        await bench.open()
        _, running = bench.started(events)
        (found,) = detect_incomplete(bench.store).executions
        assert found.execution_id == first
        record = bench.store.load(running)
        assert status_of(record, is_running=True) is ExecutionStatus.RUNNING
        point = analyze_crash_point(record, is_running=True)
        assert (point.stage, point.recovery, point.action) == ("running", "wait", "none")
        assert point.agent == (AGENT if events > 1 else None)

    run(work())


@pytest.mark.parametrize(
    ("reason", "is_shown"),
    [
        ("execution_incomplete", True),
        ("uses a clock", True),
        ("recording_failure", False),
        ("manually_invalidated", False),
    ],
)
def test_an_execution_is_incomplete_if_that_is_its_status(reason: str, is_shown: bool) -> None:
    _, _, store = memory()
    record = after((EventType.INTENT_RECEIVED, {}), side_effects=None)
    header = replace(record.header, replayable=False, replayable_reason=reason)
    record = replace(record, header=header).sealed()
    store.save(record)
    assert (status_of(record) is ExecutionStatus.INCOMPLETE) == is_shown
    assert bool(detect_incomplete(store).executions) == is_shown


@pytest.mark.parametrize("content", [b"", None])
def test_a_record_that_cannot_be_read_is_reported(bench: Bench, content: bytes | None) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        _, running = bench.started(3)
        await bench.open()
        name = f"{done.execution_id}.json"
        (bench.root / "records" / name).write_bytes(
            encode_record(done) if content is None else content
        )
        if content is None:
            bench.here.files.fail("open-read", name, errno.EIO)
        report = detect_incomplete(bench.store)
        assert [each.execution_id for each in report.executions] == [running]
        assert [each for each, _ in report.unreadable] == [done.execution_id]

    run(work())
