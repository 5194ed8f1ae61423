"""Calls of a recorder that are refused because of their values or its state."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from system.errors import NotPlainJson, StorageFull
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.errors import RecorderError
from system.recording.records.header import Reason
from system.recording.records.invalidation import invalidated
from system.recording.records.long_text import LongText
from system.recording.wal_store import WalExecutionRecorder
from tests.unit.recording.executions import (
    ENVELOPE,
    EVENTS,
    FAILURE,
    RESPONSE,
    memory,
    record_events,
    run,
)
from tests.unit.recording.recording_bench import Bench


class Unprintable:
    """A value whose ``repr`` raises an error."""

    def __repr__(self) -> str:
        raise OSError("no text")


def refuse_segments(bench: Bench) -> None:
    """Let every call that needs a new segment meet a full disk."""
    bench.here.files.fail("open-create", ".wal", errno.ENOSPC, sticky=True)


def test_a_finished_execution_is_refused_also_by_a_full_disk(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=1)
        recorder, _ = bench.started(4)
        await recorder.finalize(RESPONSE)
        refuse_segments(bench)
        calls: list[Callable[[], object]] = [
            lambda: recorder.record_event(*EVENTS[3]),
            lambda: recorder.mark_not_replayable("uses a clock"),
            lambda: recorder.complete(RESPONSE),
            lambda: recorder.append_response(RESPONSE),
        ]
        for call in calls:
            with pytest.raises(RecorderError, match="after finalization"):
                call()
        for end in (recorder.finalize, recorder.end):
            with pytest.raises(RecorderError, match="after finalization"):
                await end(RESPONSE)

    run(work())


def test_an_event_that_may_not_follow_is_not_lost_on_a_full_disk(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=1)
        recorder, execution_id = bench.started(1)
        refuse_segments(bench)
        with pytest.raises(RecorderError, match="cannot follow"):
            recorder.record_event(*EVENTS[3])
        reason = bench.store.load(execution_id).header.replayable_reason
        assert reason == Reason.EXECUTION_INCOMPLETE
        with pytest.raises(StorageFull):
            recorder.record_event(*EVENTS[1])

    run(work())


@pytest.mark.parametrize("event_type", [None, "X", ["X"], {}, 3, b"INTENT_RECEIVED", Unprintable()])
def test_an_event_of_an_odd_type_is_refused(event_type: Any) -> None:
    recorder = InMemoryExecutionRecorder(*memory())
    with pytest.raises(RecorderError, match="an event of unknown type"):
        recorder.start(ENVELOPE, events=[(event_type, {})])
    recorder.start(ENVELOPE)
    with pytest.raises(RecorderError, match="an event of unknown type"):
        recorder.record_event(event_type, {})
    record_events(recorder)
    assert run(recorder.finalize(FAILURE)) is not None


@pytest.mark.parametrize(
    "key", [10**5000, Unprintable(), None, ("a",)], ids=["large", "unprintable", "none", "tuple"]
)
def test_a_key_that_is_no_text_is_refused_whatever_it_is(key: object) -> None:
    with pytest.raises(NotPlainJson, match=r"the key .* is not a str"):
        InMemoryExecutionRecorder(*memory()).start({key: 1})


def test_a_key_beside_a_long_text_is_refused_and_loses_no_event(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(1)
        for key in (10**5000, Unprintable(), None):
            payload: dict[Any, object] = {key: LongText(["a"])}
            with pytest.raises(NotPlainJson, match=r"the key .* is not a str"):
                recorder.record_event(EVENTS[1][0], payload)
        recorder.record_event(*EVENTS[1])
        reason = bench.store.load(execution_id).header.replayable_reason
        assert reason == Reason.EXECUTION_INCOMPLETE

    run(work())


@pytest.mark.parametrize("text", [10**5000, Unprintable()], ids=["large", "unprintable"])
def test_a_text_that_is_none_is_refused_whatever_it_is(text: Any) -> None:
    recorder = InMemoryExecutionRecorder(*memory())
    with pytest.raises(RecorderError, match="give the id as a text"):
        recorder.start(ENVELOPE, re_execution_of=text)
    recorder.start(ENVELOPE)
    with pytest.raises(RecorderError, match="give a text"):
        recorder.mark_not_replayable(text)
    record = run(recorder.finalize(FAILURE))
    assert record is not None
    with pytest.raises(RecorderError, match="give a text"):
        invalidated(record, text, "Ada", memory()[0])


@pytest.mark.parametrize("rate", [float("nan"), 5, -1, 1.1, "x", None])
def test_a_sample_rate_is_a_number_from_0_to_1(bench: Bench, rate: Any) -> None:
    run(bench.open())
    sentence = "sample_rate is .*; give a number from 0.0 to 1.0"
    with pytest.raises(ValueError, match=sentence):
        InMemoryExecutionRecorder(*memory(), rate)
    with pytest.raises(ValueError, match=sentence):
        WalExecutionRecorder(bench.host, bench.recording, rate)
