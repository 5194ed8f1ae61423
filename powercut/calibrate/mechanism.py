"""The mechanism of the kernel that a forbidden outcome shows.

A model is a row of fields. If the change of one field makes the outcome legal, that field names
the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import Any, Final

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.disk.crash.persistence import PersistenceModel

UNEXPLAINED: Final = "no change of one field of the model allows it"

_MEANINGS: Final[Mapping[str, str]] = {
    "unit_bytes": "an overwrite reaches the platter in smaller units",
    "torn_units": "a unit of data is torn",
    "sequential": "data and metadata reach the platter out of order",
    "data_before_size": "a size is durable before its data, which reads as zeros",
    "stale_bytes": "a size is durable before its data, which reads as earlier bytes",
    "metadata_in_order": "changes of names overtake one another",
    "rename_waits": "a rename over another name does not wait for the file",
    "rename_parts": "a rename becomes durable in parts",
    "truncation": "a truncation becomes durable in parts",
    "synced_names": "a barrier on a file does not make its name durable",
    "coverage": "a barrier does not cover earlier changes of other files",
}


def mechanism(model: PersistenceModel, allows: Callable[[PersistenceModel], bool]) -> str:
    """Name the first change of a field with which the model ``allows`` an outcome.

    The result also says what such a change means; ``UNEXPLAINED`` if there is none.
    """
    for name, value in _changes(model):
        if allows(replace(model, **{name: value})):
            shown = value.value if isinstance(value, Enum) else value
            return f"{name}={shown}: {_MEANINGS.get(name, 'see PersistenceModel')}"
    return UNEXPLAINED


def _changes(model: PersistenceModel) -> Iterator[tuple[str, Any]]:
    for field in fields(model):
        now = getattr(model, field.name)
        for value in _values(field.name, now):
            if value != now:
                yield field.name, value


def _values(name: str, now: object) -> Iterable[Any]:
    if isinstance(now, Enum):
        return type(now)
    if isinstance(now, bool):
        return (False, True)
    return (BLOCK_BYTES, SECTOR_BYTES) if name == "unit_bytes" else ()
