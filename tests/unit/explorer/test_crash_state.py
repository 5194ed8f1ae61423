"""The states of a recorded lifetime that a search for barriers asks for."""

from __future__ import annotations

import os
from contextlib import suppress

from powercut.explorer.crash_state import alone_along, is_left, killed_along
from sim.disk.cache.key import key_of
from sim.disk.calls.process import Process
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.persistence import BTRFS
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared
from tests.unit.faults.faulty_disk import faulty_disk


def test_dropped_pages_are_those_of_the_platter() -> None:
    faulty = faulty_disk("fsync /f #2 EIO:btrfs", {"/f": b"old"}, BTRFS)
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"mid", 0)
    faulty.process.fsync(descriptor)
    faulty.process.pwrite(descriptor, b"new", 0)
    with suppress(OSError):
        faulty.process.fsync(descriptor)
    assert faulty.read("/f") == b"new"
    faulty.process.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    assert faulty.read("/f") == b"mid"
    faulty.process.pwrite(descriptor, b"x", 0)
    journal = faulty.disk.journal
    ((number, alone, _),) = alone_along(journal, BTRFS, {len(journal)})
    inode = faulty.process.fstat(descriptor).st_ino
    assert (number, alone.platter[inode].read(0, 9)) == (len(journal), b"mid")
    keys = killed_along(journal, BTRFS, {len(journal)})
    assert keys[len(journal)] == key_of(faulty.disk.unmounted().platter.values())


def _names_and_directory(calls: Calls) -> None:
    calls.create("f", "o")
    calls.mkdir("d")


def _moved_behind(barrier: str) -> list[MicroOperation]:
    """Return the unsynced pieces of a rename into another directory, after fsync of a path."""
    process = Process(Disk(prepared(_names_and_directory), BTRFS))
    if barrier:
        Calls(process).fsync(barrier)
    Calls(process).rename("f", "d/m")
    return list(process.disk.unsynced().micros)


def test_a_rename_that_is_in_parts_behind_a_barrier_is_left() -> None:
    (whole,), (name, removal) = _moved_behind(""), _moved_behind("o")
    numbers = [0, 2]
    assert is_left(whole, {name, removal}, numbers)
    assert not is_left(whole, {removal}, numbers)
    assert is_left(whole, {name}, numbers)
    assert not is_left(whole, {name})
    assert is_left(whole, {whole})
    assert is_left(removal, {removal})
    assert not is_left(name, {removal})
