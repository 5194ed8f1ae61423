"""Plain values in JSON: the acknowledged values of a workload, stored in a file and read again.

Texts, numbers, truth values and None are stored as they are. Everything else is an object with
one member that names its type: ``{"bytes": "aGVsbG8="}``, ``{"dict": [[key, value], ...]}``.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping

from oracles.violation import shown
from powercut.fuzz.action import Json
from sim.errors import HarnessError


def encoded(value: object) -> Json:
    """Return a value as JSON data; ``HarnessError`` for one that is not plain."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {"dict": [[encoded(key), encoded(each)] for key, each in value.items()]}
    if isinstance(value, list):
        return {"list": [encoded(each) for each in value]}
    if isinstance(value, tuple):
        return {"tuple": [encoded(each) for each in value]}
    raise HarnessError(
        f"the acknowledged value {shown(value)} cannot be stored in a file; acknowledge texts, "
        "bytes, numbers, or lists, tuples and mappings of them"
    )


def decoded(plain: object) -> object:
    """Return the value that ``encoded`` has encoded; ``ValueError`` for other data."""
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    if isinstance(plain, dict) and len(plain) == 1:
        ((name, content),) = plain.items()
        if name == "bytes" and isinstance(content, str):
            return b64decode(content, validate=True)
        if isinstance(content, list):
            if name == "list":
                return [decoded(each) for each in content]
            if name == "tuple":
                return tuple(decoded(each) for each in content)
            if name == "dict":
                return {decoded(key): decoded(each) for key, each in content}
    raise ValueError(f"not a stored value: {plain!r}")
