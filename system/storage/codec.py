"""Canonical JSON, and the seal that makes damage visible.

Canonical JSON has plain data only, sorted keys, no spaces, and ASCII with escapes; one value
gives the same bytes on every machine and in every version. A sealed object is one line of
canonical JSON with a last member ``crc``: eight hex digits, the CRC-32 of the canonical bytes
without that member. It is still a JSON object that ``jq`` reads.

Every sealed format carries its version in the member ``v``. The seal and ``v`` are the same
in all versions, so that an older program can distinguish a newer format from damage.

Bytes that are not ASCII, NULs, ``NaN`` and a wrong seal are refused with the reason
(``json.loads`` would take a run of NULs for UTF-32).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecoder, JSONEncoder, encoder
from math import isfinite
from types import NoneType
from typing import Final, NoReturn
from zlib import crc32

from system.errors import BadSeal, NotPlainJson
from system.foreign import shown
from system.ports import Json, JsonObject

DEEPEST: Final = 100
"""Levels of nesting; common JSON tools stop at a few hundred."""

_SEAL: Final = b',"crc":"'
_SEALED: Final = _SEAL + b'%08x"}'
_SEAL_BYTES: Final = len(_SEALED % 0)
_HEX: Final = frozenset(b"0123456789abcdef")
_ALWAYS_PLAIN: Final = frozenset((NoneType, bool, int))
_FOREIGN: Final = re.compile(rb"[^\x20-\x7e]")

_encoder: Final = JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)
# ``_encoder.encode`` makes a new one for each call, which takes as long as a short value.
_encode: Final[Callable[[Json, int], tuple[str, ...]]] = vars(encoder)["c_make_encoder"](
    None, _encoder.default, encoder.encode_basestring_ascii, None, ":", ",", True, False, False
)


def canonical(value: Json, levels: int = DEEPEST) -> bytes:
    """Return the canonical JSON of a value.

    ``levels`` limits the nesting of lists and objects. Raises ``NotPlainJson`` with the place
    of the first part that is not plain data.
    """
    refused = _refusal(value, levels)
    if refused is not None:
        place, reason = refused
        raise NotPlainJson(f"value{place}", reason or f"nested deeper than {levels} levels")
    try:
        return canonical_of_plain(value)
    except ValueError as error:
        # An integer with more digits than Python converts to text.
        raise NotPlainJson("value", str(error)) from error


def canonical_row(values: list[Json]) -> bytes:
    """Return ``canonical(values)`` for a list of texts, numbers and nulls, in less time.

    Raises ``NotPlainJson``.
    """
    try:
        encoded = canonical_of_plain(values)
    except ValueError as error:
        raise NotPlainJson("value", str(error)) from error
    # The beginning of an escaped surrogate, which may be alone.
    return canonical(values) if b"\\ud" in encoded else encoded


def canonical_of_plain(value: Json) -> bytes:
    """Return the canonical JSON of a value that is known to be plain data, as ``canonical``."""
    return "".join(_encode(value, 0)).encode("ascii")


def canonical_text(text: str) -> bytes:
    """Return the canonical JSON of a text that is known to be plain data."""
    return encoder.encode_basestring_ascii(text).encode("ascii")


def is_plain_text(value: object) -> bool:
    """Return whether a value can be an id or a name: a text without lone surrogates.

    Callers may have no type checker, and a log or a column would return another value as text.
    """
    return isinstance(value, str) and (value.isascii() or _text_refusal(value) is None)


def check_texts(**values: object) -> None:
    """Raise ``NotPlainJson``, with the name of the argument, unless each is a plain text."""
    for place, value in values.items():
        if not isinstance(value, str):
            raise NotPlainJson(place, f"{shown(value)} is not a text")
        refused = _text_refusal(value)
        if refused is not None:
            raise NotPlainJson(place, refused[1])


def _refusal(value: object, levels: int) -> tuple[str, str] | None:
    """Return the place and the reason of the first part that is not plain JSON data, or None.

    The reason is empty if the nesting is too deep. Subclasses are refused, because they would
    be read back as their base class.
    """
    if type(value) is str:
        return None if value.isascii() else _text_refusal(value)
    if type(value) in _ALWAYS_PLAIN:
        return None
    if type(value) is float:
        return None if isfinite(value) else ("", f"{value!r} is not a finite number")
    if not levels:
        return "", ""
    if type(value) is list:
        for index, item in enumerate(value):
            refused = _refusal(item, levels - 1)
            if refused is not None:
                return f"[{index}]{refused[0]}", refused[1]
        return None
    if type(value) is dict:
        return _members_refusal(value, levels - 1)
    return "", f"{type(value).__name__} is not plain JSON data"


def _members_refusal(members: dict[object, object], levels: int) -> tuple[str, str] | None:
    for key, item in members.items():
        if type(key) is not str:
            return "", f"the key {shown(key)} is not a str"
        is_plain = item.isascii() if type(item) is str else type(item) in _ALWAYS_PLAIN
        if is_plain and key.isascii():
            continue  # the usual case, decided without two calls
        refused = _text_refusal(key) or _refusal(item, levels)
        if refused is not None:
            return f"[{key!a}]{refused[0]}", refused[1]
    return None


def _text_refusal(text: str) -> tuple[str, str] | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = ascii(text[error.start])
        return "", f"lone surrogate {found} at character {error.start}"
    return None


def seal(value: JsonObject) -> bytes:
    """Return an object as one sealed line without its line end.

    The object must have members, and none of them named ``crc``.
    """
    assert value
    assert "crc" not in value
    body = canonical(value)
    return body[:-1] + _SEALED % crc32(body)


def unseal(line: bytes) -> JsonObject:
    """Return the object in a sealed line without its ``crc``; ``BadSeal`` gives the reason."""
    body = line[:-_SEAL_BYTES] + b"}"
    actual = crc32(body)
    if not line.endswith(_SEALED % actual):
        raise BadSeal(_foreign(line) or _bad_crc(line, actual))
    try:
        # ``decode`` would also skip white space, which takes half as long again.
        value, end = _decoder.raw_decode(body.decode("ascii"))
        if end < len(body):
            raise ValueError(f"extra data at offset {end}")
        if not value:
            raise ValueError("it has no members")
    except (ValueError, RecursionError) as error:
        raise BadSeal(f"it is not canonical JSON: {error}") from None
    # JSON text that ends with a brace is an object.
    assert isinstance(value, dict)
    return value


def _bad_crc(line: bytes, actual: int) -> str:
    digits = line[-10:-2]
    if line[-_SEAL_BYTES:-10] != _SEAL or line[-2:] != b'"}' or not _HEX.issuperset(digits):
        return "it does not end with a crc"
    return f"its crc is {int(digits, 16):08x}, its bytes give {actual:08x}"


def is_text(data: bytes) -> bool:
    """Return whether all bytes can occur in canonical JSON."""
    return _FOREIGN.search(data) is None


def _foreign(line: bytes) -> str:
    """Describe the first byte that canonical JSON never contains; empty if there is none."""
    found = _FOREIGN.search(line)
    if found is None:
        return ""
    byte = line[found.start()]
    return f"{f'byte 0x{byte:02x}' if byte else 'NUL byte'} at offset {found.start()}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_decoder: Final = JSONDecoder(parse_constant=_no_constant)
