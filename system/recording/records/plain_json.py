"""The plain form of values: the JSON as which an envelope, payload or response is recorded.

It is computed at once when a value is recorded. So a later change of the object has no effect,
and a type that JSON lacks is refused before the agent has run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, cast
from uuid import UUID

from system.errors import NotPlainJson
from system.foreign import shown
from system.ports import Json
from system.recording.records.long_text import LongText
from system.storage.codec import DEEPEST

_PLAIN: Final = frozenset((NoneType, bool, int, float, str))


def plain_json(value: object, place: str = "value", levels: int = DEEPEST) -> Json:
    """Return a value as plain JSON data that shares nothing with it.

    A tuple becomes a list, an aware datetime ISO 8601, a UUID its hex digits, bytes standard
    base64, a finite Decimal its text, an Enum its value, a dataclass an object, a ``LongText``
    its joined pieces. Raises ``NotPlainJson`` with the place for everything else; ``canonical``
    refuses lone surrogates and floats that are not finite.
    """
    if type(value) in _PLAIN:
        return cast("Json", value)
    if isinstance(value, LongText):
        return "".join(value.checked(place))
    if not levels:
        raise NotPlainJson(place, f"nested deeper than {DEEPEST} levels")
    if isinstance(value, Enum):
        return plain_json(value.value, place, levels - 1)
    if type(value) in {list, tuple}:
        items = cast("list[object] | tuple[object, ...]", value)
        return [plain_json(item, f"{place}[{n}]", levels - 1) for n, item in enumerate(items)]
    if type(value) is dict:
        return _members(value, place, levels - 1)
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in fields(value)}
        return _members(members, place, levels - 1)
    return _text_of(value, place)


def _members(members: Mapping[Any, object], place: str, levels: int) -> Json:
    plain: dict[str, Json] = {}
    for key, item in members.items():
        if type(key) is not str:
            raise NotPlainJson(place, f"the key {shown(key, 100)} is not a str")
        plain[key] = plain_json(item, f"{place}[{key!a}]", levels)
    return plain


def _text_of(value: object, place: str) -> str:
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise NotPlainJson(place, f"{shown(value, 100)} has no time zone")
        return value.isoformat()
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise NotPlainJson(place, f"{type(value).__name__} is not plain JSON data")
