"""Events of a recorded workload: its operations and its acknowledgements, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from stat import S_IFDIR, S_IFLNK, S_IFMT
from typing import Final, NamedTuple

from oracles.history import HistoryEntry
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.one_line import one_line
from powercut.place import Place
from sim.disk.cache.operation import (
    Create,
    DropPages,
    FailedSync,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)

_VALUE: Final = re.compile(r"[0-9a-f]{6,}|\d+")
_NAMES: Final[dict[type[Operation], str]] = {
    Resize: "truncate",
    SetAttributes: "change of attributes",
    Sync: "fsync",
    FailedSync: "failed fsync",
    DropPages: "drop of pages",
}

_MOST_TEXT: Final = 30
_CREATIONS: Final = {S_IFDIR: "mkdir", S_IFLNK: "symlink"}


class Site(NamedTuple):
    """The events of one kind at one line of the program, or on equal paths.

    ``path`` is without numbers, so that ``tmp1`` and ``tmp2`` are one site. It is empty for
    the events at ``place`` on any path.
    """

    kind: str
    place: object
    path: str


class Event(NamedTuple):
    """An operation, or the acknowledgement of a value.

    ``number`` is that of the operation, or of the acknowledgement, from 1. ``path`` is that of
    the operation, or the text that was acknowledged at an unknown line. ``entries`` is the
    number of entries of the history up to this event.
    """

    kind: str
    number: int
    place: object
    path: str
    entries: int
    operation: Operation | None = None

    @property
    def site(self) -> Site:
        """The events of this kind at this line on this path."""
        path = "" if self.operation is None else _without_numbers(self.path)
        return Site(self.kind, self.place, path)

    @property
    def wide_site(self) -> Site:
        """The events of this kind at this line, on any path."""
        return self.site._replace(path="") if self.place is not None else self.site

    def is_at(self, site: Site) -> bool:
        """Return whether the event belongs to a site."""
        return site.kind == self.kind and site in {self.site, self.wide_site}

    def is_before(self, operations: int, entries: int) -> bool:
        """Return whether the event precedes a crash with this many operations and entries."""
        return self.entries <= entries if self.operation is None else self.number <= operations

    def __str__(self) -> str:
        if isinstance(self.place, Place):
            return f"{self.kind} at {self.place.where}"
        if self.operation is None:
            return f"{self.kind} {self.number} {self.path}".rstrip()
        return f"{self.kind} of {self.path or 'everything'} (operation {self.number})"


@lru_cache(maxsize=4096)
def _without_numbers(path: str) -> str:
    return _VALUE.sub("*", path)


def between(first: Event, last: Event) -> str:
    """Return the two events in words; with their paths if they are of one line.

    If these are the same too, with their numbers.
    """
    if first.place is None or str(first) != str(last):
        return f"between {first} and {last}"
    assert isinstance(first.place, Place), first
    named = [f"{event.kind} of {event.path}" for event in (first, last)]
    if named[0] == named[1]:
        named = [
            f"{text} (operation {event.number})"
            for text, event in zip(named, (first, last), strict=True)
        ]
    return f"between {' and '.join(named)} at {first.place.where}"


def kind_of(operation: Operation) -> str:
    """Return the name of an operation; if only one call makes it, that of the call."""
    if isinstance(operation, Sync) and not operation.inode:
        return "sync"
    if isinstance(operation, Create):
        return _CREATIONS.get(S_IFMT(operation.mode), "create")
    if isinstance(operation, Write) and operation.direct:
        return "direct write"
    return _NAMES.get(type(operation), type(operation).__name__.lower())


def events_of(workload: RecordedWorkload) -> Iterator[Event]:
    """Yield the events of a workload; attempts are none, because they require nothing."""
    entries = workload.history.entries
    created: set[int] = set()
    done = acknowledged = 0
    for number in range(len(workload.journal) + 1):
        if number:
            operation = workload.journal[number - 1]
            path = operation.path
            if isinstance(operation, Rename):
                path = f"{path} to {operation.to_path}"
            place = workload.places.get(number)
            kind = kind_of(operation)
            if kind == "mkdir":
                created.add(operation.inode)
            if isinstance(operation, Unlink) and (
                operation.inode in created or _is_directory(workload, operation.inode)
            ):
                kind = "rmdir"
            yield Event(kind, number, place, path, done, operation)
        while done < len(entries) and entries[done].after == number:
            entry = entries[done]
            done += 1
            if entry.acknowledged:
                acknowledged += 1
                yield _acknowledgement(entry, acknowledged, done)


def _is_directory(workload: RecordedWorkload, number: int) -> bool:
    """Return whether an inode of the disk at the start is a directory."""
    inode = workload.journal.image.cached.get(number)
    return inode is not None and inode.is_directory


def _acknowledgement(entry: HistoryEntry, number: int, entries: int) -> Event:
    is_text = isinstance(entry.value, str) and entry.place is None
    text = f"({_abbreviated(str(entry.value))})" if is_text else ""
    return Event("ack", number, entry.place, text, entries)


def _abbreviated(text: str) -> str:
    line = one_line(" ".join(text.split()))
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…"
