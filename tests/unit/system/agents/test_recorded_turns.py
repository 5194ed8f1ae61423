"""The record of a turn: its events, its failures, and its completion by recovery."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from system.agents.orchestrator import SECOND_NS
from system.agents.turn_recorder import Durability, RecordingOptions
from system.ports import OpenMode, Tools
from system.recording.open_recording import resume_recording
from system.recording.records.header import Reason
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import find_problems
from system.recording.replays.replay import replay
from system.recording.wal.log import WriteAheadLog
from system.recovery.recovery_text import recovery_text
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeConversation
from tests.unit.system.agents.room import Room, log_of, opened
from tests.unit.system.agents.test_provider_answers import Careless

SEGMENT = "00000001.wal"


def records(room: Room) -> list[ExecutionRecord]:
    """The records of a room, in the order of their start."""
    store = room.runtime.records
    assert store is not None
    found = [store.load(each) for each in store.list_all()]
    assert all(find_problems(record) == () for record in found)
    return sorted(found, key=lambda record: str(record.events[0].payload) + record.execution_id)


def only(room: Room) -> ExecutionRecord:
    (record,) = records(room)
    return record


def types(record: ExecutionRecord) -> list[str]:
    return [event.type for event in record.events]


def payload(record: ExecutionRecord, number: int) -> Any:
    return record.events[number - 1].payload


ATTEMPT = ["INTENT_RECEIVED", "ROUTER_DECISION", "AGENT_ATTEMPT_START"]
COMPLETE = [*ATTEMPT, "AGENT_ATTEMPT_END", "FINAL_RESPONSE"]
FAILED = [*ATTEMPT, "AGENT_ATTEMPT_END", "FALLBACK_TRIGGERED", "FINAL_RESPONSE"]


def turn_lines(room: Room, agent_id: str, event: str) -> list[dict[str, Any]]:
    lines = room.read(log_of(room.session(agent_id))).splitlines()
    return [line["data"] for line in map(json.loads, lines) if line["event"] == event]


def test_a_committed_turn_is_recorded_with_everything_that_it_did() -> None:
    room, ada = opened()
    room.say(ada, "Good morning")
    record = only(room)
    assert types(record) == COMPLETE
    (start,) = turn_lines(room, ada, "turn.start")
    (line,) = turn_lines(room, ada, "turn.complete")
    assert start["execution_id"] == record.execution_id
    envelope: Any = record.envelope
    assert envelope["agent"] == "Ada"
    assert envelope["provider"] == "scripted"
    assert envelope["payload"] == [
        {"sender_name": "USER", "kind": "text", "payload": "Good morning"}
    ]
    assert envelope["routingMetadata"]["turn_id"] == start["turn_id"]
    assert envelope["routingMetadata"]["epoch"] == 1
    assert payload(record, 1)["messageIds"] == start["presented"]
    assert payload(record, 2)["retryOf"] is None
    assert payload(record, 3) == {"agent": ada, "attempt": 1, "provider": "scripted"}
    assert payload(record, 4)["presented"] == line["presented"]
    assert record.header.side_effects == "REVERSIBLE"
    assert record.final_response == {
        "status": "success",
        "payload": {"response": line["response"]},
        "metadata": {
            "turnId": line["turn_id"], "provider": "scripted",
            "identity": line["provider"]["identity"],
        },
    }  # fmt: skip


def test_equal_requests_have_one_hash_and_a_replay_calls_no_provider() -> None:
    room, ada = opened()
    room.say(ada, "Good morning")
    room.say(ada, "Good morning")
    store = room.runtime.records
    assert store is not None
    first, second = records(room)
    assert store.find_by_hash(first.header.envelope_hash) == sorted(
        [first.execution_id, second.execution_id]
    )
    prompts = len(room.provider.prompts)
    room.files.calls.clear()
    assert replay(store, first.execution_id).response == first.final_response
    assert len(room.provider.prompts) == prompts
    assert room.files.calls == []


@pytest.mark.parametrize(
    ("options", "code"),
    [(Options(), "AGENT_ERROR"), (Options(turn_timeout_ns=5 * SECOND_NS), "TIMEOUT")],
)
def test_a_turn_that_fails_is_recorded_and_its_repetition_names_it(
    options: Options, code: str
) -> None:
    room, ada = opened(options)
    if code == "TIMEOUT":
        room.provider.hooks["send"] = asyncio.Event().wait
    else:
        room.provider.fail("send")
    room.say(ada, "hello")
    if code == "TIMEOUT":
        room.settle(5)
        room.provider.hooks.clear()
    failed = only(room)
    assert types(failed) == FAILED
    assert payload(failed, 4)["status"] == "error"
    fallback = payload(failed, 5)
    assert (fallback["from"], fallback["to"], fallback["afterNs"]) == (ada, None, SECOND_NS)
    response: Any = failed.final_response
    assert (response["status"], response["error"]["code"]) == ("error", code)
    assert failed.header.replayable
    room.settle(1)
    again = next(each for each in records(room) if each.execution_id != failed.execution_id)
    assert types(again) == COMPLETE
    assert payload(again, 2)["retryOf"] == failed.execution_id


class Garbled(FakeConversation):
    """Answers with text that no line can hold."""

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        yield "\ud800"


def test_an_answer_that_cannot_be_kept_has_its_own_code() -> None:
    room = Room(providers={"scripted": Careless(Garbled)})
    room.open()
    ada = room.create("Ada")
    room.say(ada, "hello")
    response: Any = only(room).final_response
    assert response["error"]["code"] == "NOT_KEPT"


def test_a_line_that_the_disk_refuses_is_recorded_as_storage() -> None:
    room, ada = opened()

    async def full() -> None:
        room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC)

    room.provider.hooks["sent"] = full
    room.say(ada, "hello")
    response: Any = only(room).final_response
    assert response["error"]["code"] == "STORAGE"


def test_a_turn_whose_start_the_disk_refuses_is_recorded_as_storage() -> None:
    room, ada = opened()
    room.run(room.runtime.send(ada, "hello"))
    room.settle()
    before = {record.execution_id for record in records(room)}
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=2)
    room.say(ada, "again")
    (record,) = [each for each in records(room) if each.execution_id not in before]
    response: Any = record.final_response
    assert response["error"]["code"] == "STORAGE"
    assert types(record) == FAILED


def test_no_turn_begins_without_a_record_of_it() -> None:
    room, ada = opened()
    room.files.fail("append", SEGMENT, errno.ENOSPC)
    room.say(ada, "hello")
    assert room.provider.prompts == []
    assert "no space left" in room.named("Ada").trouble
    room.settle(1)
    assert len(room.provider.prompts) == 1
    assert types(only(room)) == COMPLETE


def test_a_failed_barrier_of_the_recording_stops_no_session() -> None:
    room, ada = opened()
    room.files.fail("fdatasync", SEGMENT, errno.EIO)
    room.say(ada, "hello")
    assert not room.named("Ada").stopped
    assert room.provider.prompts == []
    room.settle(1)
    lost, done = sorted(records(room), key=lambda record: record.header.replayable)
    assert lost.header.replayable_reason == Reason.RECORDING_FAILURE
    assert types(done) == COMPLETE
    assert payload(done, 2)["retryOf"] == lost.execution_id


@pytest.mark.parametrize("nth", [2, 3])
def test_behind_the_provider_no_refusal_stops_a_turn(nth: int) -> None:
    room, ada = opened()
    room.say(ada, "first")
    room.files.fail("append", SEGMENT, errno.ENOSPC, nth=nth)
    room.say(ada, "second")
    assert len(turn_lines(room, ada, "turn.complete")) == 2
    first, second = records(room)
    reasons = {first.header.replayable_reason, second.header.replayable_reason}
    assert reasons == ({None, Reason.RECORDING_FAILURE} if nth == 2 else {None})


def test_recovery_completes_the_record_of_a_committed_turn() -> None:
    room, ada = opened()
    room.files.fail("append", SEGMENT, errno.ENOSPC, nth=4)
    room.say(ada, "hello")
    before = only(room)
    room.reopen()
    after = only(room)
    assert (after.final_response, types(after)) == (before.final_response, COMPLETE)
    assert room.runtime.report.incomplete == []
    assert room.runtime.report.recording.lost_nothing


def test_an_interrupted_turn_is_reported_and_retried() -> None:
    room, ada = opened()
    room.provider.hooks["send"] = asyncio.Event().wait
    room.say(ada, "hello")
    room.provider.hooks.clear()
    room.reopen()
    (incomplete,) = room.runtime.report.incomplete
    assert (incomplete.point.stage, incomplete.point.action) == (
        "during_agent_execution",
        "retry",
    )
    text = "\n".join(recovery_text(room.runtime.report))
    assert "executions that had not ended: 1" in text
    assert f"execution {incomplete.execution_id}: interrupted during_agent_execution" in text
    room.settle()
    done = next(each for each in records(room) if each.final_response)
    assert payload(done, 2)["retryOf"] == incomplete.execution_id
    room.reopen()
    assert room.runtime.report.incomplete == []


def flip_bit_of_log(room: Room, offset: int) -> None:
    path = f"wal/{SEGMENT}"
    content = bytearray(room.read(path))
    content[offset] ^= 1
    file = room.host.files.open(path, OpenMode.WRITE)
    file.pwrite(bytes(content), 0)
    file.close()


def test_an_interrupted_turn_that_lacks_an_event_is_reported_as_damaged_only() -> None:
    room, ada = opened()
    room.provider.hooks["send"] = asyncio.Event().wait
    room.say(ada, "hello")
    room.say(room.create("Bob"), "hello")
    room.provider.hooks.clear()
    sound, corrupted = sorted(records(room), key=lambda record: "Ada" in str(record.envelope))
    room.kill()
    flip_bit_of_log(room, room.read(f"wal/{SEGMENT}").index(b"messageIds"))
    room.open()
    report = room.runtime.report
    assert [each.execution_id for each in report.incomplete] == [sound.execution_id]
    text = "\n".join(recovery_text(report))
    assert f"{corrupted.execution_id}: damage has taken a part of its record" in text


def test_damage_of_the_log_is_reported_and_put_aside() -> None:
    room, ada = opened()
    room.say(ada, "one")
    room.say(ada, "two")
    room.kill()
    flip_bit_of_log(room, 100)
    room.open()
    text = "\n".join(recovery_text(room.runtime.report))
    assert "damaged bytes at offset 26 were put aside in wal/00000001.wal.quarantine.1" in text
    assert "recording: entries are missing: 1" in text
    assert "damage has taken a part of its record" in text


def test_an_execution_of_a_session_that_cannot_be_read_stays_open() -> None:
    room, ada = opened()
    room.files.fail("append", SEGMENT, errno.ENOSPC, nth=4)
    room.say(ada, "hello")
    execution_id = only(room).execution_id
    log = log_of(room.session(ada))
    room.kill()
    room.files.fail("open-read", log, errno.EIO)
    room.open()
    store = room.runtime.records
    assert store is not None
    assert store.is_running(execution_id)
    room.reopen()
    assert only(room).final_response is not None


def test_an_execution_of_a_stopped_session_is_decided_by_the_next_boot() -> None:
    room, ada = opened()

    async def fail() -> None:
        room.files.fail("fdatasync", log_of(room.session(ada)), errno.EIO)

    room.provider.hooks["sent"] = fail
    room.say(ada, "hello")
    assert room.named("Ada").stopped
    record = only(room)
    assert record.final_response is None
    room.provider.hooks.clear()
    room.reopen()
    committed = turn_lines(room, ada, "turn.complete")
    assert bool(committed)


def test_without_recording_nothing_is_written() -> None:
    room, ada = opened(Options(recording=None))
    room.say(ada, "hello")
    assert room.runtime.records is None
    assert "wal" not in room.host.files.listdir("")
    assert "execution_id" not in turn_lines(room, ada, "turn.start")[0]
    room.reopen()
    assert "records" not in room.host.files.listdir("")


def test_an_execution_that_is_sampled_out_leaves_no_record() -> None:
    room, ada = opened(Options(recording=RecordingOptions(sample_rate=0.0)))
    room.provider.fail("send")
    room.say(ada, "hello")
    room.settle(1)
    assert records(room) == []
    assert all(data["sampled_out"] for data in turn_lines(room, ada, "turn.start"))


def test_every_event_has_a_barrier_if_that_is_asked_for() -> None:
    room, ada = opened(Options(recording=RecordingOptions(Durability.EVENTS)))
    room.files.calls.clear()
    room.say(ada, "hello")
    assert room.files.calls.count(f"fdatasync wal/{SEGMENT}") == 3
    assert types(only(room)) == COMPLETE


def test_a_failed_turn_without_a_thread_for_a_barrier_records_only_its_response_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, ada = opened(Options(recording=RecordingOptions(Durability.EVENTS)))
    barriers, barrier = itertools.count(1), WriteAheadLog.barrier

    def one_refused(log: WriteAheadLog, sequence: int) -> asyncio.Future[None]:
        if next(barriers) == 2:
            raise OSError(errno.EAGAIN, "can't start new thread")
        return barrier(log, sequence)

    monkeypatch.setattr(WriteAheadLog, "barrier", one_refused)
    room.provider.fail("send")
    room.say(ada, "hello")
    assert types(only(room)) == [*ATTEMPT, "AGENT_ATTEMPT_END", "FINAL_RESPONSE"]


def test_many_turns_lead_to_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(resume_recording, segment_bytes=4000)
    monkeypatch.setattr("system.recovery.complete_records.resume_recording", small)
    room, ada = opened()
    for number in range(7):
        room.say(ada, number)
    assert len(room.host.files.listdir("records")) > 1
    assert len(records(room)) == 7
    room.reopen()
    assert len(records(room)) == 7


def test_records_that_the_disk_refuses_wait_for_the_next_checkpoint() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    record = only(room)
    room.kill()
    room.files.fail("replace", "00000001.pack", errno.ENOSPC)
    room.open()
    assert "the records wait for the next checkpoint" in str(room.runtime.report.recording.findings)
    assert only(room) == record
    room.run(room.runtime.close())
    assert room.host.files.listdir("records") == ["00000002.pack"]


def test_a_close_whose_checkpoint_is_refused_says_so_and_frees_the_root() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.files.fail("replace", "checkpoint", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        room.run(room.runtime.close())
    room.open()
    assert types(only(room)) == COMPLETE
