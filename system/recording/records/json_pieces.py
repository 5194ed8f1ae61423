"""Canonical JSON of a value with a long text, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from system.errors import NotPlainJson
from system.foreign import shown
from system.recording.records.long_text import LongText, has_long_text
from system.recording.records.plain_json import plain_json
from system.storage.codec import DEEPEST, canonical


def canonical_pieces(value: object, place: str = "value", levels: int = DEEPEST) -> Iterator[bytes]:
    """Yield the canonical JSON of the plain form of a value; raises ``NotPlainJson``.

    Everything but the pieces of a ``LongText`` is yielded as a whole.
    """
    if isinstance(value, LongText):
        yield b'"'
        for piece in value.checked(place):
            yield canonical(piece)[1:-1]
        yield b'"'
    elif has_long_text(value):
        members, gap = cast("dict[object, object]", value), b"{"
        if not levels:
            raise NotPlainJson(place, f"nested deeper than {DEEPEST} levels")
        for key in members:
            if type(key) is not str:
                raise NotPlainJson(place, f"the key {shown(key, 100)} is not a str")
        for key, item in sorted(cast("dict[str, object]", members).items(), key=_key):
            yield gap + canonical(key) + b":"
            yield from canonical_pieces(item, f"{place}[{key!a}]", levels - 1)
            gap = b","
        yield b"}"
    else:
        yield canonical(plain_json(value, place, levels))


def _key(member: tuple[str, object]) -> str:
    return member[0]
