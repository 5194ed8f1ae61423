"""The plain form of envelopes and their hash, with known answers that never change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from uuid import UUID

import pytest

from system.errors import NotPlainJson
from system.ports import Json
from system.recording.records.envelope_hash import (
    HashFunction,
    compute_envelope_hash,
    matching_function,
)
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.plain_json import plain_json


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: object


# The canonical bytes are written out; the hashes come from `printf %s … | sha256sum`.
VECTORS: list[tuple[object, bytes, str]] = [
    (
        {},
        b"{}",
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    ),
    (
        {"b": [1, 1.0, -0.0, 1e300], "a": {"é": None, "z": True}},
        b'{"a":{"z":true,"\\u00e9":null},"b":[1,1.0,-0.0,1e+300]}',
        "sha256:6e6ca2edbee356c1d1f461ce4f36fb22affd389259eee06478d5b76dd9708437",
    ),
    (
        {"agent": "Ada", "routingMetadata": {"turn_id": "x"}, "payload": [{"routingMetadata": 1}]},
        b'{"agent":"Ada","payload":[{"routingMetadata":1}]}',
        "sha256:adb59077fa80359da6f4dc10738625b3734096cd2b63ca485400d386c59baf1a",
    ),
]


@pytest.mark.parametrize(("envelope", "canonical", "expected"), VECTORS)
def test_known_answers(envelope: object, canonical: bytes, expected: str) -> None:
    assert compute_envelope_hash(envelope) == f"sha256:{sha256(canonical).hexdigest()}"
    assert compute_envelope_hash(envelope) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2,)), [1, [2]]),
        (datetime(2026, 11, 23, 17, 5, tzinfo=UTC), "2026-11-23T17:05:00+00:00"),
        (
            datetime(2026, 11, 23, 17, 5, 0, 7, timezone(timedelta(hours=2))),
            "2026-11-23T17:05:00.000007+02:00",
        ),
        (UUID(int=10), "0" * 31 + "a"),
        (b"\xff\xfe", "//4="),
        (Colour.RED, "red"),
        (Decimal("1.50"), "1.50"),
        (Point(1, (Colour.RED,)), {"x": 1, "y": ["red"]}),
    ],
)
def test_a_type_that_json_lacks_has_one_plain_form(value: object, expected: Json) -> None:
    assert plain_json(value) == expected
    # The hash is the same before a save and after a load (planted bug I14).
    assert compute_envelope_hash({"k": value}) == compute_envelope_hash({"k": expected})


DEEP: list[object] = []
for _ in range(101):
    DEEP = [DEEP]
CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({2: "x"}, "the key 2 is not a str"),
        ({"a": {"b": {1, 2}}}, r"value\['a'\]\['b'\]: set is not plain"),
        ({"a": float("nan")}, "nan is not a finite number"),
        ({"a": float("-inf")}, "-inf is not a finite number"),
        ({"a": Decimal("NaN")}, "Decimal is not plain"),
        ({"a": "\ud800"}, "lone surrogate"),
        ({"a": datetime.fromisoformat("2026-01-01")}, "has no time zone"),
        ({"a": object()}, "object is not plain"),
        ({"a": Point}, "type is not plain"),
        ({"a": DEEP}, "nested deeper than 100 levels"),
        ({"a": CYCLE}, "nested deeper than 100 levels"),
        ([], "envelope: list is not an object"),
        (None, "envelope: NoneType is not an object"),
    ],
)
def test_everything_else_is_refused_with_its_place(value: object, reason: str) -> None:
    with pytest.raises(NotPlainJson, match=reason):
        compute_envelope_hash(value)


def test_the_plain_form_shares_nothing_with_the_value() -> None:
    inner = [1]
    envelope = {"a": inner}
    frozen = FrozenJson.of(envelope)
    inner.append(2)
    assert frozen.members() == {"a": [1]}
    frozen.members()["a"] = 3
    assert frozen.value() == {"a": [1]}


def test_the_order_of_keys_does_not_count_and_any_value_does() -> None:
    one = compute_envelope_hash({"a": 1, "b": {"c": 2, "d": [3]}})
    assert one == compute_envelope_hash({"b": {"d": [3], "c": 2}, "a": 1})
    assert one != compute_envelope_hash({"b": {"d": [3.0], "c": 2}, "a": 1})


ROUTED = FrozenJson.of({"agent": "Ada", "routingMetadata": {"hop": 1}})
PLAIN = FrozenJson.of({"agent": "Ada"})


def _sha(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


@pytest.mark.parametrize(
    ("envelope", "hashed", "version", "expected"),
    [
        (ROUTED, PLAIN.encoded, 2, HashFunction.VERSION_2),
        (ROUTED, PLAIN.encoded, None, HashFunction.WITHOUT_ROUTING),
        (ROUTED, ROUTED.encoded, None, HashFunction.WHOLE_ENVELOPE),
        (ROUTED, ROUTED.encoded, 2, None),
        (PLAIN, b"other", None, None),
    ],
)
def test_both_unversioned_functions_are_accepted_on_reading(
    envelope: FrozenJson, hashed: bytes, version: int | None, expected: HashFunction | None
) -> None:
    assert matching_function(envelope, _sha(hashed), version) is expected
