"""Pages that a check drops after a failed barrier, in the lazy engine."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.cache.operation import DropPages, Resize, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.undecided.question import DroppedPages
from tests.litmus.observer import FailedSyncs

_DROP = DropPages("/f", 2)


def test_questions_for_dropped_pages_do_not_depend_on_the_time() -> None:
    early, late = (DroppedPages.after([Resize("/f", 2, 9, 0, now_ns), _DROP]) for now_ns in (1, 2))
    assert early == late
    assert DroppedPages.after([Resize("/f", 2, 8, 0, 1), _DROP]) != early
    assert str(early) == "the dropped pages of inode 2"


def _loses_pages(process: Process, ack: History) -> None:
    """Lose two pages, and write to the second one again."""
    descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, b"old." * 2048)
    process.sync()
    process.pwrite(descriptor, b"lost", 0)
    process.pwrite(descriptor, b"lost", 4096)
    process.disk.interposer = FailedSyncs(SyncFailure.XFS)
    with suppress(OSError):
        process.fsync(descriptor)
    ack("lost")
    process.pwrite(descriptor, b"next", 4096)


def _drops(process: Process, known: Known) -> None:
    if not known.acknowledged:
        return
    descriptor = process.open("/f", os.O_RDWR)
    second = process.pread(descriptor, 4, 4096)
    process.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if process.pread(descriptor, 4, 0) != b"old.":
        raise Violation("a page was not dropped")
    if process.pread(descriptor, 4, 4096) != (b"next" if second == b"next" else b"old."):
        raise Violation("a page in which something is unsynced was dropped")


@pytest.mark.parametrize("nested", [0, 1])
@pytest.mark.parametrize("engine", [Engine.LAZY, Engine.BRUTE])
def test_after_a_kill_a_check_drops_the_pages_that_the_workload_has_lost(
    engine: Engine, nested: int
) -> None:
    found = explore(_loses_pages, _drops, "xfs", Limits(engine=engine, nested=nested))
    assert found.is_lazy is (engine is Engine.LAZY)
    assert found.safe, found.failures
