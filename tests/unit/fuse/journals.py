"""Journals of a few operations, as ``try`` records them."""

from __future__ import annotations

import os

from oracles.history import History, HistoryEntry
from sim.disk.calls.process import Process
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk


def replacing() -> Journal:
    """Write a file beside another one, and rename it over that, without a barrier."""
    before = Process(Disk())
    put(before, "/f", b"old")
    disk = Disk(before.disk.unmounted())
    process = Process(disk)
    put(process, "/t", b"new")
    process.rename("/t", "/f")
    return disk.journal


def put(process: Process, path: str, data: bytes) -> None:
    """Write a file, without a barrier."""
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, data)
    process.close(descriptor)


def acknowledged(journal: Journal) -> History:
    """A history that acknowledges the last operation."""
    return History(lambda: 0, entries=[HistoryEntry(len(journal), True, "exit 0")])


def all_keys(journal: Journal, model: PersistenceModel) -> set[int]:
    """The keys of every state that a power cut may leave, by walking each whole space."""
    unsynced, found = Unsynced(model, journal.image.platter), set()
    for number in range(len(journal) + 1):
        if number:
            unsynced.advance(journal[number - 1], number)
        found |= {state.key for state in StateSpace(unsynced).all()}
    return found
