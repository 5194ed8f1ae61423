"""Canonical JSON and the seal: same bytes everywhere, and no damage passes."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import StrEnum
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system.errors import BadSeal, NotPlainJson
from system.ports import Json, JsonObject
from system.storage.codec import canonical, is_text, seal, unseal

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)  # fmt: skip
OBJECT: st.SearchStrategy[JsonObject] = st.dictionaries(
    TEXT.filter(lambda key: key != "crc"), JSON, min_size=1
)
SEALED = b'{"a":[1,true,null],"\\u00e9":"\\ud83d\\ude00","crc":"06b0015b"}'


def sealed_anyway(body: bytes) -> bytes:
    """Seal bytes that the encoder would never write."""
    return body[:-1] + b',"crc":"%08x"}' % crc32(body)


class Colour(StrEnum):
    RED = "red"


class Name(str):
    __slots__ = ()


def test_canonical_bytes_are_pinned() -> None:
    value: Json = {"b": 1, "a": {"z": 0.1, "y": [True, None, -3, 1e22]}, "é": '\n"😀\x7f\0'}

    assert canonical(value) == (
        b'{"a":{"y":[true,null,-3,1e+22],"z":0.1},"b":1,"\\u00e9":"\\n\\"\\ud83d\\ude00\\u007f\\u0000"}'
    )


def test_order_of_keys_makes_no_difference() -> None:
    assert canonical({"a": 1, "b": {"c": 2, "d": 3}}) == canonical({"b": {"d": 3, "c": 2}, "a": 1})


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"a": [0, {"k": b"x"}]}, "value['a'][1]['k']", "bytes is not plain JSON data"),
        ({"a": (1, 2)}, "value['a']", "tuple is not plain JSON data"),
        ([Colour.RED], "value[0]", "Colour is not plain JSON data"),
        ([Name("x")], "value[0]", "Name is not plain JSON data"),
        (OrderedDict(a=1), "value", "OrderedDict is not plain JSON data"),
        ({"a": {1: 2}}, "value['a']", "the key 1 is not a str"),
        ({Name("x"): 2}, "value", "the key 'x' is not a str"),
        ([float("nan")], "value[0]", "nan is not a finite number"),
        ([float("-inf")], "value[0]", "-inf is not a finite number"),
        (["ab\ud800"], "value[0]", "lone surrogate '\\ud800' at character 2"),
        ({"\udc00": 1}, "value['\\udc00']", "lone surrogate '\\udc00' at character 0"),
        ("\ud83d\ude00", "value", "lone surrogate '\\ud83d' at character 0"),
    ],
)
def test_what_is_not_plain_is_refused_by_place(value: Any, place: str, reason: str) -> None:
    with pytest.raises(NotPlainJson) as refused:
        canonical(value)

    assert (refused.value.place, refused.value.reason) == (place, reason)


def test_nesting_without_end_is_refused() -> None:
    circle: list[Json] = []
    circle.append(circle)

    with pytest.raises(NotPlainJson, match="nested deeper than 100 levels"):
        canonical(circle)


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_hundred_levels_are_taken(begin: bytes, end: bytes) -> None:
    value: Json = 1
    for _ in range(100):
        value = [value] if begin == b"[" else {"a": value}

    assert canonical(value) == begin * 100 + b"1" + end * 100
    for deeper in ([value], {"a": value}):
        with pytest.raises(NotPlainJson, match="nested deeper than 100 levels"):
            canonical(deeper)


def test_an_integer_too_long_for_text_is_refused() -> None:
    with pytest.raises(NotPlainJson, match="4300 digits"):
        canonical({"a": 10**5000})


@given(OBJECT)
def test_what_was_sealed_comes_back_equal_as_printable_text(value: JsonObject) -> None:
    sealed = seal(value)

    assert unseal(sealed) == value
    assert canonical(unseal(sealed)) == canonical(value)  # 1, 1.0 and True differ here
    assert is_text(sealed)
    assert json.loads(sealed)["crc"] == f"{crc32(canonical(value)):08x}"


def test_sealed_bytes_are_pinned() -> None:
    assert seal({"é": "😀", "a": [1, True, None]}) == SEALED


@pytest.mark.parametrize("offset", range(len(SEALED)))
def test_no_flipped_bit_passes(offset: int) -> None:
    for bit in range(8):
        damaged = bytearray(SEALED)
        damaged[offset] ^= 1 << bit

        with pytest.raises(BadSeal):
            unseal(bytes(damaged))


@pytest.mark.parametrize("length", range(len(SEALED)))
def test_no_beginning_passes(length: int) -> None:
    with pytest.raises(BadSeal):
        unseal(SEALED[:length])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it does not end with a crc"),
        (b'{"a":1}', "it does not end with a crc"),
        (b'{"a":1,"crc":"ABCDEF01"}', "it does not end with a crc"),
        (b'{"a":1,"crc":"00000000"}', "its crc is 00000000, its bytes give 561bacaf"),
        (b'{"a":1\xff,"crc":"00000000"}', "byte 0xff at offset 6"),
        (b'{"a":"' + bytes(20), "NUL byte at offset 6"),
        ('{"a":1}'.encode("utf-32"), "byte 0xff at offset 0"),
        (bytes(4096), "NUL byte at offset 0"),
        (sealed_anyway(b'{"a":NaN}'), "it is not canonical JSON: NaN is not a JSON number"),
        (sealed_anyway(b'{"a":\xff}'), "it is not canonical JSON: 'ascii' codec can't decode byte"),
        (sealed_anyway(b"{}"), "it is not canonical JSON: it has no members"),
        (sealed_anyway(b"{}}"), "it is not canonical JSON: extra data at offset 2"),
        (sealed_anyway(b'{"a":1]}'), "it is not canonical JSON: Expecting ',' delimiter"),
        (sealed_anyway(b'{"a":' + b"[" * 100_000 + b"}"), "it is not canonical JSON: "),
    ],
)
def test_a_bad_seal_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(BadSeal) as refused:
        unseal(line)

    assert str(refused.value).startswith(reason)
