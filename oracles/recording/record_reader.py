"""Records by their format: members, hashes, event chain (docs/file-formats.md, Records)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import MAX_WBITS, decompress
from zlib import error as zlib_error

from oracles.recording.canonical import canonical, envelope_hash, hash_text
from oracles.recording.violations import BrokenRecord

FINAL: Final = "FINAL_RESPONSE"

_ID: Final = re.compile(r"exec-[0-9a-f]{16}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class ObservedEvent(NamedTuple):
    """One event of a record; ``payload`` is canonical JSON."""

    seq: int
    type: str
    payload: bytes


class ObservedRecord(NamedTuple):
    """A record as it was read; JSON values are canonical.

    ``invalidated`` has the reason and the author of its invalidation, or is None.
    """

    execution_id: str
    envelope: bytes
    side_effects: str | None
    events: tuple[ObservedEvent, ...]
    response: bytes | None
    reason: str | None
    invalidated: tuple[str, str] | None


def read_record_file(name: str, data: bytes) -> ObservedRecord:
    """Return the record in a file of the store; raise ``BrokenRecord`` if the file is damaged."""
    try:
        text = decompress(data, MAX_WBITS | 16) if name.endswith(".gz") else data
        members = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, zlib_error) as error:
        raise BrokenRecord("the file of a record is no JSON", name=name, error=str(error)) from None
    record = read_record(members)
    if name.removesuffix(".gz") != f"{record.execution_id}.json":
        raise BrokenRecord("a record has the name of another", name=name, id=record.execution_id)
    return record


def read_record(members: Mapping[str, object]) -> ObservedRecord:
    """Return a record from its JSON object; raise ``BrokenRecord`` if its parts disagree."""
    try:
        header, envelope, events = members["header"], members["envelope"], members["events"]
        assert isinstance(header, dict)
        assert isinstance(envelope, dict)
        assert isinstance(events, list)
        observed = tuple(
            ObservedEvent(event["seq"], event["type"], canonical(event["payload"]))
            for event in events
        )
        response = members["finalResponse"]
        record = ObservedRecord(
            header["executionId"],
            canonical(envelope),
            header.get("sideEffectClass"),
            observed,
            None if response is None else canonical(response),
            header["replayableReason"],
            _invalidation(header),
        )
        _check_header(header, members)
    except (KeyError, TypeError, AssertionError) as error:
        raise BrokenRecord("a member of a record is missing", error=repr(error)) from None
    _check(record, header["envelopeHash"] == envelope_hash(envelope), "hash of the envelope")
    _check_chain(record, header, events)
    _check_events(record, members)
    return record


def _check_header(header: dict[str, object], members: Mapping[str, object]) -> None:
    """Check identity, reason and hash of the whole record."""
    identity = str(header["executionId"])
    shown = {"v": members["v"], "hashVersion": header["hashVersion"]}
    if not _ID.fullmatch(identity) or not _TIME.fullmatch(str(header["createdUtcIso"])):
        raise BrokenRecord("the id or the time of a record is malformed", header=header)
    if shown != {"v": 1, "hashVersion": 2}:
        raise BrokenRecord("a record has another version", **shown)
    if header["replayable"] is not (header["replayableReason"] is None):
        raise BrokenRecord("replayable and its reason disagree", header=header)
    without = {name: value for name, value in header.items() if name != "recordHash"}
    if header["recordHash"] != hash_text(canonical({**members, "header": without})):
        raise BrokenRecord("the hash of a record is wrong", execution_id=identity)


def _check_chain(record: ObservedRecord, header: dict[str, object], events: list[object]) -> None:
    link = str(header["envelopeHash"])
    for event in events:
        link = hash_text(link.encode("ascii") + canonical(event))
    _check(record, header["eventChain"] == link, "event chain")
    _check(record, header["eventCount"] == len(events), "number of events")


def _check_events(record: ObservedRecord, members: Mapping[str, object]) -> None:
    """Check numbers, final response and router decision."""
    numbers = [event.seq for event in record.events]
    rising = all(before < after for before, after in pairwise(numbers))
    _check(record, rising and all(number > 0 for number in numbers), "order of events")
    if record.reason is None:
        _check(record, numbers == list(range(1, len(numbers) + 1)), "numbers of events")
    finals = [event.payload for event in record.events if event.type == FINAL]
    _check(record, finals == ([] if record.response is None else [record.response]), "response")
    _check(record, FINAL not in [event.type for event in record.events[:-1]], "last event")
    routes = [event.payload for event in record.events if event.type == "ROUTER_DECISION"]
    route = canonical(members["routerDecision"])
    _check(record, route == (routes[-1] if routes else b"null"), "router decision")


def _check(record: ObservedRecord, holds: bool, part: str) -> None:
    if not holds:
        raise BrokenRecord(f"the {part} of a record is wrong", record=record)


def _invalidation(header: dict[str, object]) -> tuple[str, str] | None:
    found = header.get("invalidation")
    if found is None:
        return None
    assert isinstance(found, dict)
    return found["reason"], found["by"]


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members
