"""An immutable JSON value: its canonical bytes.

A record keeps bytes instead of objects, so neither the caller that recorded a value nor a
reader of the record can change it (planted bugs I13, I16).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from system.errors import NotPlainJson
from system.ports import Json, JsonObject
from system.recording.records.plain_json import plain_json
from system.storage.codec import canonical


@dataclass(frozen=True, slots=True)
class FrozenJson:
    """A JSON value; ``encoded`` is canonical, so equal values have equal bytes."""

    encoded: bytes

    @classmethod
    def of(cls, value: object) -> FrozenJson:
        """Freeze the plain form of a value; raises ``NotPlainJson``."""
        if isinstance(value, FrozenJson):
            return value
        try:
            # Most values are plain already.
            return cls(canonical(cast("Json", value)))
        except NotPlainJson:
            return cls(canonical(plain_json(value)))

    @classmethod
    def of_object(cls, value: object, name: str) -> FrozenJson:
        """Freeze a value that must be a JSON object; ``name`` is for the error."""
        frozen = cls.of(value)
        if not frozen.is_object:
            raise NotPlainJson(name, f"{type(value).__name__} is not an object")
        return frozen

    @property
    def is_object(self) -> bool:
        """Whether the value is a JSON object."""
        return self.encoded.startswith(b"{")

    def value(self) -> Json:
        """Return the value; every call returns a new one."""
        return cast("Json", json.loads(self.encoded))

    def members(self) -> JsonObject:
        """Return the members of an object; every call returns a new dict."""
        assert self.is_object
        return cast("JsonObject", json.loads(self.encoded))


EMPTY = FrozenJson(b"{}")
