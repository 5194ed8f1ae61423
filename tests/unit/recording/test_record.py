"""Records as JSON: round trip, structure, hashes; damage is found and never returned."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from time import sleep
from typing import Any

import pytest

from system.errors import NewerFormat
from system.host import RealClock
from system.recording.executions.deterministic_clock import DeterministicClock
from system.recording.records.errors import RecordCorruptedError
from system.recording.records.event import EventType
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.header import Invalidation, Reason
from system.recording.records.invalidation import invalidated
from system.recording.records.record import ExecutionRecord
from system.recording.records.record_members import from_dict
from system.recording.records.status import ExecutionStatus, status_of
from system.recording.records.structure import (
    envelope_function,
    find_problems,
    verify_event_sequence,
)
from system.recording.replays.replay import ReplayEngine
from system.recording.stores.gzip_data import compressed
from system.recording.stores.record_file import decode_record, encode_record
from system.storage.codec import canonical
from tests.unit.recording.executions import FAILURE, RESPONSE, finished

PATH = "records/exec-0000000000000001.json"


def decoded(members: Any) -> ExecutionRecord:
    return decode_record(json.dumps(members).encode(), PATH)


@pytest.mark.parametrize("response", [RESPONSE, FAILURE, {}, {"status": "success", "x": ["é"]}])
def test_a_record_is_read_back_as_it_was_written(response: dict[str, Any]) -> None:
    record = finished(response)
    data = encode_record(record)
    again = decode_record(data, PATH)
    assert again == record
    assert encode_record(again) == data
    assert from_dict(record.to_dict()) == record
    assert canonical(again.to_dict()) == record.encoded()
    lines = data.decode().splitlines()
    assert [line[:4] for line in lines] == ["{", *['  "e'] * 2, *["    "] * 5, *['  "f', '  "h'],
                                           '  "r', '  "v', "}"]  # fmt: skip


def test_a_compressed_record_is_gzip_and_read_back() -> None:
    record = finished()
    data = compressed(encode_record(record))
    assert gzip.decompress(data) == encode_record(record)
    assert data[4:8] == bytes(4), "it has no time"
    assert decode_record(data, PATH, compressed=True) == record
    assert compressed(encode_record(record)) == data


def test_members_of_a_later_version_are_kept_and_covered_by_the_hash() -> None:
    record = finished()
    event = replace(record.events[0], others=FrozenJson.of({"span": 1}))
    record = replace(
        record,
        events=(event, *record.events[1:]),
        others=FrozenJson.of({"tags": ["a"]}),
        header=replace(
            record.header,
            replayable=False,
            replayable_reason="manually_invalidated",
            invalidation=Invalidation("x", "Ada", "", others=FrozenJson.of({"ticket": 7})),
            others=FrozenJson.of({"region": "x"}),
        ),
    ).sealed()
    members: Any = json.loads(encode_record(record))
    assert members["tags"] == ["a"]
    assert members["header"]["region"] == "x"
    assert members["header"]["invalidation"]["ticket"] == 7
    assert members["events"][0]["span"] == 1
    assert decoded(members) == record
    members["tags"] = ["b"]
    with pytest.raises(RecordCorruptedError, match="recordHash"):
        decoded(members)


def test_an_event_of_unknown_type_is_kept_and_flagged() -> None:
    record = finished()
    known = record.events
    news = replace(known[3], seq=4, type="NEWS")
    events = (*known[:3], news, *(replace(each, seq=each.seq + 1) for each in known[3:]))
    record = replace(record, events=events).sealed()
    again = decode_record(encode_record(record), PATH)
    assert again.unknown_types == ("NEWS",)
    assert status_of(again) is ExecutionStatus.COMPLETED


CHANGES: list[tuple[str, Callable[[Any], object]]] = [
    ("v is missing", lambda r: r.pop("v")),
    ("v=9 is unknown", lambda r: r.update(v=9)),
    ("hashVersion is missing", lambda r: r["header"].pop("hashVersion")),
    ("hashVersion=3 is unknown", lambda r: r["header"].update(hashVersion=3)),
    ("executionId='exec-1'", lambda r: r["header"].update(executionId="exec-1")),
    ("envelopeHash is not sha256", lambda r: r["header"].update(envelopeHash="x")),
    ("createdUtcIso='now'", lambda r: r["header"].update(createdUtcIso="now")),
    ("createdUtcIso='2026'", lambda r: r["header"].update(createdUtcIso="2026")),
    ("createdUtcIso=.* is not a time in UTC",
     lambda r: r["header"].update(createdUtcIso="2026-09-21T14:13:20.000000+00:00")),
    ("createdUtcIso='nowZ'", lambda r: r["header"].update(createdUtcIso="nowZ")),
    ("contradict each other", lambda r: r["header"].update(replayable=False)),
    ("contradict each other", lambda r: r["header"].update(replayableReason="x")),
    ("does not have the envelopeHash", lambda r: r["envelope"].update(agent="Bob")),
    ("recordHash", lambda r: r["envelope"]["routingMetadata"].update(agent_id="x")),
    ("recordHash", lambda r: r["header"].pop("recordHash")),
    ("recordHash", lambda r: r["events"][0].update(timestamp="later")),
    ("eventCount=5, and there are 4 events", lambda r: r["events"].pop()),
    ("numbers are", lambda r: r["events"].pop(1)),
    ("do not increase", lambda r: r["events"].reverse()),
    ("do not increase", lambda r: r["events"][0].update(seq=0)),
    ("eventChain", lambda r: r["events"][0].update(payload=1)),
    ("cannot follow", lambda r: r["events"][2].update(type="INTENT_RECEIVED")),
    ("are not both there", lambda r: r.update(finalResponse=None)),
    ("differs from the event", lambda r: r["finalResponse"].update(payload=1)),
    ("routerDecision is not", lambda r: r.update(routerDecision=None)),
    ("header is NoneType, not dict", lambda r: r.pop("header")),
    ("events is dict, not list", lambda r: r.update(events={})),
    ("event is int, not dict", lambda r: r["events"].append(1)),
    ("an event has no payload", lambda r: r["events"][0].pop("payload")),
    ("seq is bool, not int", lambda r: r["events"][0].update(seq=True)),
    ("envelope is list, not dict", lambda r: r.update(envelope=[])),
    ("finalResponse is str, not dict", lambda r: r.update(finalResponse="x")),
    ("deeper than 100", lambda r: r.update(envelope=json.loads('{"a":' * 101 + "1" + "}" * 101))),
    ("lone surrogate", lambda r: r["envelope"].update(agent="\ud800")),
]  # fmt: skip


INVALIDATION_CHANGES: list[tuple[str, Callable[[Any], object]]] = [
    ("details has 0 texts", lambda r: r["header"]["invalidation"].update(details=[])),
    ("details has 2 texts", lambda r: r["header"]["invalidation"]["details"].append("x")),
    ("details is int", lambda r: r["header"]["invalidation"].update(details=[1])),
    ("recordHash", lambda r: r["header"]["invalidation"].update(more=1)),
    ("recordHash", lambda r: r["header"]["invalidation"].update(by="Bob")),
    ("does not cover", lambda r: r["header"].update(reExecutionOf=None)),
    ("does not cover", lambda r: r["events"][0].update(timestamp=None)),
]


@pytest.mark.parametrize(
    ("problem", "change"), INVALIDATION_CHANGES, ids=range(len(INVALIDATION_CHANGES))
)
def test_a_changed_invalidation_is_corrupted(problem: str, change: Callable[[Any], object]) -> None:
    marked = replace(finished(), header=replace(finished().header, replayable_reason="a clock"))
    record = invalidated(marked, "wrong", "Ada", RealClock())
    members = json.loads(encode_record(record))
    assert members["header"]["invalidation"]["details"] == ["a clock"]
    assert decoded(members) == record
    change(members)
    with pytest.raises(RecordCorruptedError, match=problem):
        decoded(members)


@pytest.mark.parametrize(("problem", "change"), CHANGES, ids=range(len(CHANGES)))
def test_a_changed_record_is_corrupted(problem: str, change: Callable[[Any], object]) -> None:
    members = json.loads(encode_record(finished()))
    change(members)
    with pytest.raises(RecordCorruptedError, match=problem) as corrupted:
        decoded(members)
    assert corrupted.value.path == PATH
    if (salvaged := corrupted.value.record) is not None:
        assert salvaged.execution_id.startswith("exec-")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b'{"a":1,"a":2}', "the key 'a' occurs twice"),
        (b'{"v":1,"header":{"x":1,"x":1}}', "the key 'x' occurs twice"),
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b"\xff", "it is not JSON"),
        (b"[" * 200_000, "it is not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "it is not JSON: Exceeds the limit"),
        (b'{"a":"\\ud800"}', "value.*lone surrogate"),
    ],
)
def test_a_file_that_is_no_record_is_corrupted(data: bytes, problem: str) -> None:
    with pytest.raises(RecordCorruptedError, match=problem) as corrupted:
        decode_record(data, PATH)
    # The remedies for the caller of a recorder, and for a Python program, are not for a file.
    assert str(corrupted.value).count("; ") == RecordCorruptedError.cure.count("; ") + 1


def test_a_compressed_file_that_is_none_is_corrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compressed(encode_record(finished()))
    for damaged in (b"", data[:-1], data + b"x", b"x" + data[1:]):
        with pytest.raises(RecordCorruptedError, match="gzip file") as corrupted:
            decode_record(damaged, PATH, compressed=True)
        readable = corrupted.value.record
        assert (readable is None) is (damaged[:1] != data[:1])
        if readable is not None:
            assert ReplayEngine(readable).is_replayable() == (False, Reason.RECORD_CORRUPTED)
            assert readable.final_response == RESPONSE
    monkeypatch.setattr("system.recording.stores.gzip_data.LARGEST_BYTES", 100)
    with pytest.raises(RecordCorruptedError, match="more than 100 bytes"):
        decode_record(data, PATH, compressed=True)


@pytest.mark.parametrize("name", ["replayableReason", "reExecutionOf"])
def test_a_foreign_record_with_a_lone_surrogate_is_corrupted(name: str) -> None:
    members = foreign(json.loads(encode_record(finished())))
    members["header"] |= {"replayable": False, "replayableReason": "x", name: "\ud800"}
    with pytest.raises(RecordCorruptedError, match="lone surrogate"):
        decoded(members)


def test_a_record_of_a_newer_version_is_named_as_such() -> None:
    newer = encode_record(replace(finished(), version=2).sealed())
    with pytest.raises(NewerFormat, match="v=2, known is v=1"):
        decode_record(newer, PATH)
    for damaged in (newer.replace(b"Hello", b"Hullo"), b'{"v":2}', b'{"v":2,"header":{}}'):
        with pytest.raises(RecordCorruptedError):
            decode_record(damaged, PATH)


def foreign(members: Any) -> Any:
    """Return the members of a record as another program writes it."""
    del members["v"]
    for name in ("hashVersion", "recordHash", "eventCount", "eventChain", "sideEffectClass"):
        del members["header"][name]
    return members


def test_a_foreign_record_is_readable_and_only_its_envelope_is_verified() -> None:
    members = foreign(json.loads(encode_record(finished())))
    members["events"] = members["events"][1:3]
    record = decoded(members)
    assert record.header.is_foreign
    function = envelope_function(record)
    assert function is not None
    assert function.value == "hash without a version, without routingMetadata"
    assert json.loads(encode_record(record)) == members
    members["envelope"]["agent"] = "Bob"
    with pytest.raises(RecordCorruptedError, match="envelopeHash"):
        decoded(members)


def test_a_foreign_record_that_is_invalidated_stays_foreign() -> None:
    record = decoded(foreign(json.loads(encode_record(finished()))))
    again = invalidated(record, "wrong", "Ada", RealClock())
    assert again.header.replayable_reason == Reason.MANUALLY_INVALIDATED
    assert decode_record(encode_record(again), PATH) == again
    assert again.header.is_foreign


@pytest.mark.parametrize(
    "seal", [{"v": 1}, {"eventCount": 5}, {"eventChain": "sha256:0"}, {"recordHash": "sha256:0"}]
)
def test_a_member_of_a_seal_without_its_version_is_no_foreign_record(seal: dict[str, Any]) -> None:
    members = foreign(json.loads(encode_record(finished())))
    members["events"] = members["events"][:3]
    assert decoded({**members}).header.is_foreign
    (members if "v" in seal else members["header"]).update(seal)
    with pytest.raises(RecordCorruptedError, match="hashVersion is missing"):
        decoded(members)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((), True), ((1, 2, 3), True), ((1, 5), True), ((1, 1), False), ((0, 1), False),
     ((2, 1), False)],
)  # fmt: skip
def test_numbers_of_events_increase_from_above_zero(
    numbers: tuple[int, ...], expected: bool
) -> None:
    event = finished().events[0]
    assert verify_event_sequence(replace(event, seq=n) for n in numbers) is expected


def test_a_corrupted_status_comes_first_and_a_failed_recording_has_its_own() -> None:
    record = finished()
    header = replace(record.header, replayable=False, replayable_reason=Reason.RECORDING_FAILURE)
    failed = replace(record, header=header).sealed()
    assert status_of(failed) is ExecutionStatus.RECORDING_FAILED
    short = replace(failed, events=(record.events[0], replace(record.events[4], seq=2))).sealed()
    assert find_problems(short) == ()
    assert find_problems(invalidated(short, "wrong", "Ada", RealClock())) == ()
    assert status_of(replace(failed, events=())) is ExecutionStatus.CORRUPTED


def test_sixteen_threads_count_without_a_gap() -> None:
    class Slow(int):
        """A number whose addition lets other threads run."""

        def __add__(self, other: int) -> Slow:
            sleep(0)
            return Slow(int(self) + other)

    clock, seen = DeterministicClock(Slow()), list[int]()
    assert clock.current() == DeterministicClock().current() == 0

    def count() -> None:
        seen.extend(clock.next() for _ in range(1000))

    threads = [Thread(target=count) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 16_001))
    assert clock.current() == 16_000


def test_event_types_are_the_six_of_the_design() -> None:
    assert {str(each) for each in EventType} == {
        "INTENT_RECEIVED", "AGENT_ATTEMPT_START", "AGENT_ATTEMPT_END", "FALLBACK_TRIGGERED",
        "ROUTER_DECISION", "FINAL_RESPONSE",
    }  # fmt: skip
