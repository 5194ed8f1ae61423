"""Crash sites of the lazy engine."""

from __future__ import annotations

import os
from contextlib import suppress

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.explore import explore
from powercut.explorer.lazy.crash_sites import crash_sites
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.litmus.observer import FailedSyncs

NESTED = Limits(nested=1, engine=Engine.LAZY)


def _acknowledged_before_a_sync(process: Process, ack: History) -> None:
    process.mkdir("/d")
    ack("d")
    process.sync()


def test_an_operation_that_leaves_nothing_new_is_no_crash_site() -> None:
    workload = record(_acknowledged_before_a_sync, MODELS["ext4"], Image.empty())
    sites = crash_sites(workload.journal, workload.history, MODELS["ext4"], UNLIMITED, nested=False)
    found = [(site.point.operation, site.entries) for site in sites if site.layer is not None]
    assert found == [(1, 0), (1, 0), (1, 1)]


def _fails_to_sync(process: Process, ack: History) -> None:
    """Write a file; its pages are clean after a failed fsync, but not on the platter."""
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.sync()
    ack("f")
    process.write(descriptor, b"x")
    process.disk.interposer = FailedSyncs(SyncFailure.EXT4)
    with suppress(OSError):
        process.fsync(descriptor)


def _trusts_its_sync(process: Process, _known: Known) -> None:
    names = process.listdir("/")
    descriptor = process.open("/f", os.O_RDWR) if "f" in names else -1
    is_there = descriptor >= 0 and process.read(descriptor, 9) == b"x"
    if "seen" in names and not is_there:
        raise Violation("lost")
    if is_there and "seen" not in names:
        process.fsync(descriptor)
        process.mkdir("/seen")


def test_a_kill_after_a_failed_sync_leaves_clean_pages() -> None:
    lazy = explore(_fails_to_sync, _trusts_its_sync, "ext4", NESTED)
    brute = explore(_fails_to_sync, _trusts_its_sync, "ext4", Limits(nested=1, engine=Engine.BRUTE))
    assert (lazy.is_lazy, lazy.safe, brute.safe) == (True, False, False)


def _writes_two_pages(process: Process, ack: History) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.sync()
    ack("f")
    process.write(descriptor, b"x" * 8192)


def _keeps_a_page(process: Process, _known: Known) -> None:
    names = process.listdir("/")
    if "f" not in names:
        return
    size = process.stat("/f").st_size
    if "half" in names and size < 4096:
        raise Violation("the page is lost")
    if size == 4096 and "half" not in names:
        process.fsync(process.open("/f", os.O_RDONLY))
        process.mkdir("/half")


def test_a_kill_during_a_write_carries_its_pages_over() -> None:
    found = explore(_writes_two_pages, _keeps_a_page, "ext4", NESTED)
    assert (found.is_lazy, found.safe) == (True, True)
