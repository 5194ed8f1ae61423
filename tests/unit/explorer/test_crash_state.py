"""The states of a recorded lifetime that a search for barriers asks for."""

from __future__ import annotations

import os
from contextlib import suppress

from powercut.explorer.crash_state import alone_along, killed_along
from sim.disk.cache.key import key_of
from sim.disk.crash.persistence import BTRFS
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
