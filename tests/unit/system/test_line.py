"""One line of a log: its bytes, its members and its session."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from system.errors import BadSeal, LineTooLarge, NewerFormat, NotPlainJson
from system.ports import Json, JsonObject
from system.storage.codec import seal
from system.storage.line import (
    FIRST_BYTES,
    LARGEST_BYTES,
    SHORTEST_BYTES,
    Line,
    decode_line,
    encode_line,
    timestamp,
)

OWNER = "0123456789abcdef0123456789abcdef"
LINE = Line(41, "2026-03-01T12:00:00.000042Z", OWNER, "turn.start", {"prompt": "Grüße"})
ENCODED = (
    b'{"data":{"prompt":"Gr\\u00fc\\u00dfe"},"event":"turn.start","seq":41,'
    b'"session_id":"0123456789abcdef0123456789abcdef","ts":"2026-03-01T12:00:00.000042Z","v":1,'
    b'"crc":"be0c7d66"}\n'
)


def with_member(name: str, value: Json) -> bytes:
    members: JsonObject = json.loads(ENCODED)
    del members["crc"]
    return seal({**members, name: value})


def test_bytes_of_a_line_are_pinned() -> None:
    assert encode_line(LINE, "p") == ENCODED


def test_a_line_of_version_1_is_read_for_ever() -> None:
    assert decode_line(ENCODED[:-1], OWNER, "p") == LINE


def test_a_line_says_what_was_durable_unless_it_is_the_line_before() -> None:
    line = Line(41, LINE.ts, OWNER, "e", {}, durable=39)

    encoded = encode_line(line, "p")

    assert encoded.startswith(b'{"data":{},"durable":39,"event":"e","seq":41,')
    assert decode_line(encoded[:-1], OWNER, "p") == line
    assert (line.known_durable, LINE.known_durable) == (39, 40)


@pytest.mark.parametrize("durable", [-1, 40, 41, 39.5, "39", None])
def test_a_line_that_says_something_else_of_what_was_durable_is_refused(durable: Json) -> None:
    with pytest.raises(BadSeal, match="it is sealed, but its members are not those of a line"):
        decode_line(with_member("durable", durable), OWNER, "p")


def test_other_tools_see_one_json_object_a_line() -> None:
    members = json.loads(ENCODED)

    assert sorted(members) == ["crc", "data", "event", "seq", "session_id", "ts", "v"]
    assert re.fullmatch("[0-9a-f]{8}", members["crc"])


def test_data_that_is_not_plain_is_refused_by_place() -> None:
    data: Any = {"at": {1: 2}}

    with pytest.raises(NotPlainJson, match=r"value\['data'\]\['at'\]: the key 1 is not a str"):
        encode_line(Line(1, "", OWNER, "e", data), "p")


def test_a_line_over_the_limit_is_refused_by_path() -> None:
    def encoded(length: int) -> bytes:
        return encode_line(Line(1, "", OWNER, "e", {"x": "y" * length}), "events.jsonl")

    overhead = len(encoded(0))
    assert len(encoded(LARGEST_BYTES - overhead)) == LARGEST_BYTES
    with pytest.raises(LineTooLarge, match="size_bytes=16777217 is over the limit"):
        encoded(LARGEST_BYTES - overhead + 1)


def test_a_line_of_a_newer_format_is_not_damage() -> None:
    with pytest.raises(NewerFormat, match="it has lines of format v=2, known is v=1"):
        decode_line(with_member("v", 2), OWNER, "events.jsonl")


@pytest.mark.parametrize(
    ("name", "value"),
    [("v", 0), ("v", "1"), ("seq", "41"), ("seq", 4.5), ("event", None), ("data", []), ("ts", 1),
     ("extra", 1)],
)  # fmt: skip
def test_a_sealed_object_that_is_no_line_is_refused(name: str, value: Json) -> None:
    with pytest.raises(BadSeal, match="it is sealed, but it"):
        decode_line(with_member(name, value), OWNER, "p")


def test_a_line_of_another_session_is_refused() -> None:
    with pytest.raises(BadSeal, match="it belongs to session_id=7"):
        decode_line(with_member("session_id", 7), OWNER, "p")
    with pytest.raises(BadSeal, match=f"it belongs to session_id='{OWNER}'"):
        decode_line(ENCODED[:-1], "f" * 32, "p")


def test_nothing_shorter_than_the_shortest_line_is_a_line() -> None:
    shortest = encode_line(Line(1, "", "", "", {}), "p")

    assert len(shortest) == SHORTEST_BYTES
    assert shortest.startswith(FIRST_BYTES)


@pytest.mark.parametrize(
    ("wall_ns", "expected"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_772_366_400_000_042_999, "2026-03-01T12:00:00.000042Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_time_stamps_are_iso_8601_in_utc(wall_ns: int, expected: str) -> None:
    assert timestamp(wall_ns) == expected
