"""Properties of all records, whether their parts agree or not."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from system.ports import Json, JsonObject
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.recording.records.header import ExecutionHeader, Invalidation
from system.recording.records.record import ExecutionRecord
from system.recording.records.record_members import from_dict
from system.storage.codec import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
OBJECT: st.SearchStrategy[JsonObject] = st.dictionaries(TEXT, JSON, max_size=3)
FROZEN = OBJECT.map(FrozenJson.of)
# No member that this version knows begins so.
OTHERS = st.just(EMPTY) | st.dictionaries(
    TEXT.map("new ".__add__), JSON, min_size=1, max_size=2
).map(FrozenJson.of)  # fmt: skip
EVENTS = st.lists(
    st.builds(
        ExecutionEvent,
        st.integers(),
        st.sampled_from(EventType) | TEXT,
        JSON.map(FrozenJson.of),
        st.none() | TEXT,
        OTHERS,
    ),
    max_size=6,
)
HEADERS = st.builds(
    ExecutionHeader,
    execution_id=TEXT,
    created_utc_iso=TEXT,
    envelope_hash=TEXT,
    replayable=st.booleans(),
    replayable_reason=st.none() | TEXT,
    hash_version=st.none() | st.integers(),
    side_effects=st.none() | TEXT,
    re_execution_of=st.none() | TEXT,
    invalidation=st.none() | st.builds(Invalidation, TEXT, TEXT, TEXT, st.none() | TEXT, OTHERS),
    event_count=st.none() | st.integers(),
    event_chain=st.none() | TEXT,
    record_hash=st.none() | TEXT,
    others=OTHERS,
)
RECORDS = st.builds(
    ExecutionRecord,
    HEADERS,
    FROZEN,
    EVENTS.map(tuple),
    st.none() | FROZEN,
    st.none() | st.integers(),
    OTHERS,
)


@given(RECORDS)
def test_a_record_and_its_json_are_inverse_to_each_other(record: ExecutionRecord) -> None:
    again = from_dict(record.to_dict())
    assert again == record
    assert [event.timestamp for event in again.events] == [
        event.timestamp for event in record.events
    ]
    assert again.encoded() == record.encoded() == canonical(record.to_dict())
    assert json.loads(record.indented()) == json.loads(record.encoded())


@given(EVENTS)
def test_the_router_decision_is_that_of_the_last_such_event(events: list[ExecutionEvent]) -> None:
    record = ExecutionRecord(
        ExecutionHeader(execution_id="", created_utc_iso="", envelope_hash=""), EMPTY, tuple(events)
    )
    payloads = [event.payload for event in events if event.type == "ROUTER_DECISION"]
    assert record.router_decision == (payloads[-1] if payloads else None)
    assert record.to_dict()["routerDecision"] == record.router_decision
