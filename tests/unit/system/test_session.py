"""The session record: its bytes, refused content, and its transitions."""

from __future__ import annotations

import json

import pytest

from system.errors import IllegalTransition, NewerFormat, NotPlainJson, SessionRecordDamaged
from system.ports import Json, JsonObject
from system.sessions.session import SessionRecord, SessionState, decode_record, encode_record
from system.storage.codec import seal

ID = "0123456789abcdef0123456789abcdef"
RECORD = SessionRecord(ID, "scripted", "tiny-1", SessionState.SUSPENDED, b"\0blob\xff")
ENCODED = (
    b'{"model":"tiny-1","provider_name":"scripted","provider_state_blob":"AGJsb2L/",'
    b'"session_id":"0123456789abcdef0123456789abcdef","state":"SUSPENDED","v":1,'
    b'"crc":"42b77593"}\n'
)
LEGAL = {("ACTIVE", "SUSPENDED"), ("ACTIVE", "TERMINATED"), ("SUSPENDED", "ACTIVE"),
         ("SUSPENDED", "TERMINATED")}  # fmt: skip


def with_member(name: str, value: Json) -> bytes:
    members: JsonObject = json.loads(ENCODED)
    del members["crc"]
    return seal({**members, name: value}) + b"\n"


def test_bytes_of_a_record_are_pinned() -> None:
    assert encode_record(RECORD) == ENCODED


def test_a_record_of_version_1_is_read_for_ever() -> None:
    assert decode_record(ENCODED, ID, "p") == RECORD


@pytest.mark.parametrize("length", range(len(ENCODED)))
def test_no_beginning_of_a_record_is_one(length: int) -> None:
    with pytest.raises(SessionRecordDamaged):
        decode_record(ENCODED[:length], ID, "p")


@pytest.mark.parametrize("offset", range(len(ENCODED)))
def test_no_flipped_bit_in_a_record_passes(offset: int) -> None:
    for bit in range(8):
        damaged = bytearray(ENCODED)
        damaged[offset] ^= 1 << bit

        with pytest.raises(SessionRecordDamaged):
            decode_record(bytes(damaged), ID, "p")


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"", "it does not end with a line end"),
        (bytes(200), "it does not end with a line end"),
        (with_member("session_id", "f" * 32), f"it belongs to session_id='{'f' * 32}'"),
        (with_member("state", "active"), "'active' is not a valid SessionState"),
        (with_member("provider_state_blob", "AGJ"), "Incorrect padding"),
        (with_member("provider_state_blob", "A*=="), "Only base64 data is allowed"),
        (with_member("model", None), "it is sealed, but it is not a session record"),
        (with_member("v", 0), "it is sealed, but it is not a session record"),
        (with_member("extra", 1), "it is sealed, but it is not a session record"),
    ],
)
def test_a_bad_record_says_why_and_where(encoded: bytes, reason: str) -> None:
    with pytest.raises(SessionRecordDamaged) as damaged:
        decode_record(encoded, ID, "agents/x/session.json")

    assert damaged.value.path == "agents/x/session.json"
    assert damaged.value.reason.startswith(reason)


def test_a_record_of_a_newer_format_is_not_damage() -> None:
    newer = seal({"v": 7, "whatever": []}) + b"\n"

    with pytest.raises(NewerFormat, match="it has format v=7, known is v=1"):
        decode_record(newer, ID, "p")


def test_a_text_that_is_none_is_refused() -> None:
    with pytest.raises(NotPlainJson):
        encode_record(SessionRecord(ID, "\ud800", "m", SessionState.ACTIVE))


@pytest.mark.parametrize("before", SessionState)
@pytest.mark.parametrize("after", SessionState)
def test_only_legal_transitions_are_taken(before: SessionState, after: SessionState) -> None:
    record = SessionRecord(ID, "p", "m", before)

    if (before.value, after.value) in LEGAL:
        record.moved_to(after).check_follows(record, "p")
    else:
        with pytest.raises(IllegalTransition, match=f"it is {before} and cannot become {after}"):
            record.moved_to(after).check_follows(record, "p")


def test_a_transition_keeps_the_blob_unless_it_brings_a_new_one() -> None:
    assert RECORD.moved_to(SessionState.ACTIVE).provider_state_blob == b"\0blob\xff"
    assert RECORD.moved_to(SessionState.ACTIVE, b"").provider_state_blob == b""
