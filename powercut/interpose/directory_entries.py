"""``os.DirEntry``: entries of the disk and of the real machine are instances of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import GenericAlias
from typing import NoReturn

from sim.disk.calls.directory_entry import DirectoryEntry

_RealEntry = os.DirEntry


def routed_entries() -> Iterator[tuple[object, object]]:
    """Yield ``os.DirEntry`` with its replacement."""
    yield _RealEntry, DirEntry


class EntryType(type):
    """The metaclass of the routed ``DirEntry``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealEntry | DirectoryEntry)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass in {cls, _RealEntry, DirectoryEntry}

    def __call__(cls, *_arguments: object, **_options: object) -> NoReturn:
        raise TypeError("cannot create 'posix.DirEntry' instances")

    def __getitem__(cls, item: object) -> GenericAlias:
        """Return the generic alias of the real class."""
        return GenericAlias(_RealEntry, item)


class DirEntry(metaclass=EntryType):
    """Replaces the class of the entries of ``os.scandir``; it has no instances of its own."""


DirEntry.__module__ = "posix"
