"""The mechanism of the kernel that a forbidden outcome shows.

A model is a row of fields. If the change of one field makes the outcome legal, that field names
the mechanism, and a class of ``docs/disk.md`` may be known for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from powercut.calibrate.file_system import Kind
from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.disk.crash.persistence import PersistenceModel

UNEXPLAINED: Final = "no change of one field of the model allows it"

# The fields in the order in which they are tried: those that say little come last.
_MEANINGS: Final[Mapping[str, str]] = {
    "rename_waits": "a rename over another name does not wait for the file",
    "rename_parts": "a rename becomes durable in parts",
    "data_before_size": "a size is durable before its data, which reads as zeros",
    "truncation": "a truncation becomes durable in parts",
    "coverage": "a barrier does not cover earlier changes of other files",
    "synced_names": "a barrier on a file does not make its name durable",
    "metadata_in_order": "changes of names overtake one another",
    "stale_bytes": "a size is durable before its data, which reads as earlier bytes",
    "unit_bytes": "an overwrite reaches the platter in smaller units",
    "torn_units": "a unit of data is torn",
    "sequential": "data and metadata reach the platter out of order",
}
_CLASSES: Final[Mapping[tuple[str, Kind], str]] = {
    ("rename_waits", Kind.BTRFS): "B1",
    ("rename_parts", Kind.BTRFS): "B2, B8, B9, B13, B15, B18, B22",
    ("metadata_in_order", Kind.BTRFS): "B3, B4, B23",
    ("truncation", Kind.BTRFS): "B5, T7",
    ("coverage", Kind.BTRFS): "B4, B7, B10, B11, B12, B14, B16, B19, B21, T6",
    ("data_before_size", Kind.BTRFS): "B17",
    ("data_before_size", Kind.EXT4): "E1, E2",
    ("rename_waits", Kind.EXT4): "E3",
    ("coverage", Kind.EXT4): "J1",
    ("coverage", Kind.XFS): "J1",
    ("synced_names", Kind.EXT4): "J2",
    ("truncation", Kind.EXT4): "T1, T5",
    ("truncation", Kind.XFS): "T1, T5, T8",
    **{("sequential", kind): "P1" for kind in Kind},
}


def mechanism(
    kind: Kind, model: PersistenceModel, allows: Callable[[PersistenceModel], bool]
) -> str:
    """Name the first change of a field with which the model ``allows`` an outcome.

    The result also says what such a change means, and which classes of ``docs/disk.md`` are
    known for it. ``UNEXPLAINED`` if there is none.
    """
    for name, value in _changes(model):
        if allows(replace(model, **{name: value})):
            shown = value.value if isinstance(value, Enum) else value
            known = _CLASSES.get((name, kind))
            return f"{name}={shown}: {_MEANINGS[name]}" + (f" ({known})" if known else "")
    return UNEXPLAINED


def _changes(model: PersistenceModel) -> Iterator[tuple[str, Any]]:
    for name in _MEANINGS:
        now = getattr(model, name)
        for value in _values(name, now):
            if value != now:
                yield name, value


def _values(name: str, now: object) -> Iterable[Any]:
    if isinstance(now, Enum):
        return type(now)
    if isinstance(now, bool):
        return (False, True)
    return (BLOCK_BYTES, SECTOR_BYTES) if name == "unit_bytes" else ()
