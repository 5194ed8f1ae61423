"""No fault strikes a drop of pages: the call of ``posix_fadvise`` cannot fail."""

from __future__ import annotations

import os
from contextlib import suppress

from sim.disk.cache.operation import DropPages
from tests.unit.faults.faulty_disk import faulty_disk


def test_a_file_system_that_is_read_only_drops_pages() -> None:
    faulty = faulty_disk("fsync /f #1 EIO:xfs; change * from 3 EROFS", {"/f": b"old"})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"NEW", 0)
    with suppress(OSError):
        faulty.process.fsync(descriptor)
    faulty.process.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    assert isinstance(faulty.disk.journal[-1], DropPages)
    assert faulty.read("/f") == b"old"
