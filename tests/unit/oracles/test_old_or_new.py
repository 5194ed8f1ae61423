"""The default check of ``explore``: each wrong content is called by the property it breaks."""

from __future__ import annotations

import pytest

from oracles.history import Known
from oracles.old_or_new import Content, OldOrNew
from oracles.violation import LostAck, SilentEmpty, TornRecord, Violation

KNOWN = Known(({"a": b"old", "b": b"old"}, {"a": b"now", "b": b"now"}), ({"a": b"next"},))


def check(a: Content, b: Content) -> None:
    OldOrNew({"a": None, "b": None})({"a": a, "b": b}, KNOWN)


@pytest.mark.parametrize("a", [b"now", b"next"])
def test_the_acknowledged_value_and_the_one_in_flight_are_allowed(a: Content) -> None:
    check(a, b"now")


@pytest.mark.parametrize(
    ("a", "b", "violation"),
    [
        (b"old", b"now", LostAck),
        (b"now", b"", SilentEmpty),
        (b"ne", b"now", TornRecord),
        (b"next", b"no", TornRecord),
        (b"old", b"no", TornRecord),
    ],
)
def test_anything_else_is_called_by_the_property_it_breaks(
    a: Content, b: Content, violation: type[Violation]
) -> None:
    with pytest.raises(Violation) as raised:
        check(a, b)
    assert type(raised.value) is violation


def test_files_of_different_values_are_torn() -> None:
    known = Known((), ({"a": b"next", "b": b"next"},))
    before = {"a": b"now", "b": b"now", "c": b"same"}
    with pytest.raises(TornRecord, match="parts of different values") as raised:
        OldOrNew(before)({"a": b"next", "b": b"now", "c": b"same"}, known)
    # Of a alone, what is found would be the value in flight.
    assert [*raised.value.evidence.items()] == [
        ("expected", {"a": b"now", "b": b"now"}),
        ("in_flight", [{"a": b"next", "b": b"next"}]),
        ("actual", {"a": b"next", "b": b"now"}),
    ]


def test_the_evidence_has_each_content_that_is_allowed() -> None:
    known = Known((), ({"a": b"new"}, {"a": b"new"}, {"b": b"new"}))
    with pytest.raises(TornRecord) as raised:
        OldOrNew({"a": b"old", "b": b"old"})({"a": b"ne", "b": b"old"}, known)
    assert [*raised.value.evidence.items()] == [
        ("expected", {"a": b"old"}),
        ("in_flight", [{"a": b"new"}]),
        ("actual", {"a": b"ne"}),
    ]


def test_the_evidence_has_no_value_in_flight_where_none_is_allowed() -> None:
    with pytest.raises(TornRecord) as raised:
        OldOrNew({"a": b"old"})({"a": b"ne"}, Known((), ()))
    assert [*raised.value.evidence] == ["expected", "actual"]
