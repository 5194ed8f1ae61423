"""The readers of the oracle: files of a recording that break their format are violations."""

from __future__ import annotations

import gzip
import json
import struct
from binascii import crc32
from collections.abc import Callable
from typing import Any, Final

import pytest

from oracles.recording.canonical import canonical, hash_text
from oracles.recording.crash_points import expected_point
from oracles.recording.record_reader import (
    ObservedEvent,
    ObservedRecord,
    read_record,
    read_record_file,
)
from oracles.recording.root_files import check_recovered_names, checkpoint_number, first_segment
from oracles.recording.violations import BrokenLog, BrokenRecord
from oracles.recording.wal_reader import ENTRY_BYTES, HEADER_BYTES, check_segment, read_segment
from oracles.violation import Garbage, TornRecord
from system.recording.executions.entry_type import EntryType
from system.recording.stores.record_file import encode_record
from system.recording.wal.format import SegmentHeader, encode_entry
from system.storage.codec import seal
from tests.unit.recording.executions import finished

NAME: Final = f"{finished().execution_id}.json"


def members() -> dict[str, Any]:
    found = finished().to_dict()
    assert isinstance(found, dict)
    return dict(found)


def test_a_sound_record_is_read() -> None:
    record = finished()
    data = encode_record(record)
    observed = read_record_file(NAME, data)
    assert (observed.execution_id, observed.reason) == (record.execution_id, None)
    assert [event.type for event in observed.events] == [event.type for event in record.events]
    assert read_record_file(f"{NAME}.gz", gzip.compress(data)) == observed


SPOILED: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "no envelope": lambda m: m.pop("envelope"),
    "version": lambda m: m.update(v=2),
    "route": lambda m: m.update(routerDecision=None),
    "no response": lambda m: m.update(finalResponse=None),
    "envelope": lambda m: m["envelope"].update(agent="Bob"),
    "last event": lambda m: m["events"].pop(),
    "order": lambda m: m["events"].reverse(),
    "payload": lambda m: m["events"][0].update(payload={}),
    "id": lambda m: m["header"].update(executionId="exec-1"),
    "time": lambda m: m["header"].update(createdUtcIso="yesterday"),
    "replayable": lambda m: m["header"].update(replayable=False),
    "reason": lambda m: m["header"].update(replayableReason="recording_failure"),
    "count": lambda m: m["header"].update(eventCount=1),
    "chain": lambda m: m["header"].update(eventChain="sha256:0"),
    "record hash": lambda m: m["header"].update(recordHash="sha256:0"),
    "hash version": lambda m: m["header"].update(hashVersion=1),
}


@pytest.mark.parametrize("part", SPOILED)
def test_a_record_with_a_wrong_member_is_broken(part: str) -> None:
    changed = members()
    read_record(changed)
    SPOILED[part](changed)
    with pytest.raises(BrokenRecord):
        read_record(changed)


@pytest.mark.parametrize(
    ("seqs", "is_sound"), [((1, 2, 3, 5), True), ((1, 3, 2, 5), False), ((0, 1, 2, 5), False)]
)
def test_the_events_of_a_record_with_a_loss_have_rising_numbers_above_0(
    seqs: tuple[int, ...], is_sound: bool
) -> None:
    changed = members()
    header, events = changed["header"], changed["events"][:4]
    chain = header["envelopeHash"]
    for event, seq in zip(events, seqs, strict=True):
        event["seq"] = seq
        chain = hash_text(chain.encode() + canonical(event))
    changed.update(events=events, finalResponse=None)
    header.update(eventCount=4, eventChain=chain)
    header.update(replayable=False, replayableReason="recording_failure")
    del header["recordHash"]
    header["recordHash"] = hash_text(canonical(changed))
    if is_sound:
        read_record(changed)
    else:
        with pytest.raises(BrokenRecord, match="order of events"):
            read_record(changed)


def test_a_record_file_of_another_execution_or_without_json_is_broken() -> None:
    data = encode_record(finished())
    twice = data.replace(b'  "v": 1', b'  "v": 1,\n  "v": 1')
    cut = gzip.compress(data)[:-9]
    files = (f"exec-{9:016x}.json", data), (NAME, data[:-9]), (NAME, twice), (f"{NAME}.gz", cut)
    for name, content in files:
        with pytest.raises(BrokenRecord):
            read_record_file(name, content)


# -- the log -----------------------------------------------------------------------------------


def segment(*payloads: bytes, first: int = 1) -> bytes:
    header = SegmentHeader(first, 7)
    entries = [
        encode_entry(EntryType.START, first + n, payload, header.crc)
        for n, payload in enumerate(payloads)
    ]
    return header.encoded() + b"".join(entries)


def log_record(**durable: int) -> bytes:
    return json.dumps({"x": f"exec-{1:016x}", "n": 0, "p": {}, **durable}).encode()


def test_a_sound_segment_is_read_to_its_last_number() -> None:
    assert check_segment("a", segment(log_record(), log_record(durable=0)), 0) == 2
    assert check_segment("a", segment(first=5), 4) == 4


@pytest.mark.parametrize(
    ("content", "above"),
    [
        (b"", 0),
        (segment(log_record())[:-1], 0),
        (segment(log_record()) + b"\0", 0),
        (b"X" + segment(log_record())[1:], 0),
        (segment(log_record()), 1),
        (segment(log_record(durable=1)), 0),
        (segment(log_record())[:HEADER_BYTES] + b"\0" * ENTRY_BYTES, 0),
    ],
)
def test_a_segment_that_breaks_the_format_is_broken(content: bytes, above: int) -> None:
    with pytest.raises(BrokenLog):
        check_segment("a", content, above)


def entry(entry_type: int, payload: bytes, missing: int = 0) -> bytes:
    """Return the first entry of a segment; its length says ``missing`` bytes more, with its crc."""
    length = len(payload) + missing
    covered = struct.pack(">BQI", entry_type, 1, length) + payload
    crc = crc32(covered, SegmentHeader(1, 7).crc)
    return struct.pack(">IBQI", length, entry_type, 1, crc) + payload


def test_an_entry_that_is_longer_than_its_segment_is_not_whole() -> None:
    whole = segment() + entry(EntryType.START, log_record())
    assert read_segment(whole) == read_segment(segment(log_record()))
    longer = segment() + entry(EntryType.START, log_record(), missing=1)
    assert read_segment(longer) == read_segment(segment())


def test_an_entry_of_an_unknown_type_is_broken() -> None:
    check_segment("a", segment() + entry(EntryType.START, log_record()), 0)
    with pytest.raises(BrokenLog, match="unknown type"):
        check_segment("a", segment() + entry(7, log_record()), 0)


def test_every_flip_in_an_entry_ends_the_whole_part_of_a_segment() -> None:
    content = segment(log_record(), log_record())
    whole = read_segment(content)
    assert whole is not None
    for offset in range(whole.entries[1].start, len(content)):
        flipped = bytearray(content)
        flipped[offset] ^= 1
        found = read_segment(bytes(flipped))
        assert found is not None
        assert found.entries == whole.entries[:1]


# -- other files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("wal", "00000001.wal"),
        ("wal", "current.next"),
        ("snapshots", NAME),
        ("snapshots", "spool.tmp.00000001"),
        ("records", f"{NAME}.tmp.00000001"),
        ("records", "exec-1.json"),
    ],
)
def test_a_file_that_recovery_should_have_removed_is_garbage(directory: str, name: str) -> None:
    kept = {"wal": ["current", "00000001.wal.quarantine.1"], "records": [NAME, f"{NAME}.gz"]}
    check_recovered_names(kept)
    with pytest.raises(Garbage):
        check_recovered_names({directory: [name]})


def test_a_checkpoint_without_its_seal_is_torn() -> None:
    whole = seal({"v": 1, "sequence": 41, "segment": 2}) + b"\n"
    assert (checkpoint_number(whole), first_segment(whole)) == (41, 2)
    for content in (b"", whole[:-3], whole.replace(b"41", b"42"), seal({"v": 2, "sequence": 1})):
        with pytest.raises(TornRecord):
            checkpoint_number(content)


@pytest.mark.parametrize(
    ("last", "payload", "stage", "of_irreversible"),
    [
        ("", b"{}", "before_start", "retry"),
        ("INTENT_RECEIVED", b"{}", "after_receive", "retry"),
        ("ROUTER_DECISION", b"{}", "after_routing", "retry"),
        ("AGENT_ATTEMPT_START", b"{}", "during_agent_execution", "confirm"),
        ("AGENT_ATTEMPT_END", b'{"status":"success"}', "after_success", "confirm"),
        ("AGENT_ATTEMPT_END", b'{"status":"error"}', "after_failure", "confirm"),
        ("FALLBACK_TRIGGERED", b"{}", "during_fallback", "confirm"),
        ("FINAL_RESPONSE", b"{}", "after_final_response", "none"),
        ("NEWS", b"{}", "unknown", "confirm"),
    ],
)
def test_the_last_event_gives_the_stage(
    last: str, payload: bytes, stage: str, of_irreversible: str
) -> None:
    events = (ObservedEvent(1, last, payload),) if last else ()
    for side_effects, action in (("IRREVERSIBLE", of_irreversible), ("READ_ONLY", None)):
        record = ObservedRecord("exec", b"{}", side_effects, events, None, None, None)
        point = expected_point(record)
        assert point.stage == stage
        expected = action or ("retry" if of_irreversible == "confirm" else of_irreversible)
        assert point.action == ("confirm" if stage == "unknown" else expected)
