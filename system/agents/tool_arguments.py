"""The arguments of tools, which a model has written: each is checked before it is used."""

from __future__ import annotations

from system.foreign import shown
from system.ports import Json, JsonObject


class Refused(Exception):
    """A tool call is refused without an effect; the message is the answer."""


def text_of(arguments: JsonObject, key: str, default: str | None = None) -> str:
    """Return an argument that is a text; raises ``Refused``."""
    value = arguments.get(key, default)
    if not isinstance(value, str):
        raise Refused(f"{key}={shown(value)} is not a text")
    return value


def optional_text_of(arguments: JsonObject, key: str) -> str | None:
    """Return an argument that is a text, or None if it is missing; raises ``Refused``."""
    return None if arguments.get(key) is None else text_of(arguments, key)


def object_of(arguments: JsonObject, key: str) -> JsonObject:
    """Return an argument that is an object, empty if it is missing; raises ``Refused``."""
    value: Json = arguments.get(key, {})
    if not isinstance(value, dict):
        raise Refused(f"{key}={shown(value, 100)} is not an object")
    return value


def delay_of(arguments: JsonObject, longest_ns: int, default: int | None = None) -> int:
    """Return ``delay_ns``, from 0 to ``longest_ns``; raises ``Refused``."""
    delay_ns = arguments.get("delay_ns", default)
    if not isinstance(delay_ns, int) or isinstance(delay_ns, bool) or delay_ns < 0:
        raise Refused(f"delay_ns={shown(delay_ns)} is not a number of nanoseconds")
    if delay_ns > longest_ns:
        raise Refused(f"delay_ns is over the limit of {longest_ns}")
    return delay_ns
