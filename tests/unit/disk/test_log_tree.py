"""The log tree of btrfs: names are in order while there is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from powercut.explorer.crash_state import alone_along
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.notes import LogTree
from sim.disk.crash.persistence import BTRFS, POSIX, XFS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared
from tests.litmus.observer import FailedSyncs


def _running(model: PersistenceModel = BTRFS) -> Process:
    return Process(Disk(prepared(lambda calls: calls.write("f", "A1")), model))


def _two_names(process: Process) -> None:
    process.link("/f", "/g")
    process.unlink("/f")


def _in_order(process: Process) -> bool:
    """Return whether the second of two unsynced names needs the first."""
    first, second = process.disk.unsynced().ordering.order
    assert not first
    return second == 1


def _fsync(process: Process) -> None:
    Calls(process).fsync("f")


def _failed_fsync(policy: SyncFailure) -> Callable[[Process], None]:
    def fail(process: Process) -> None:
        process.disk.interposer = FailedSyncs(policy)
        with suppress(OSError):
            _fsync(process)
        process.disk.interposer = None

    return fail


def _write_synced(process: Process) -> None:
    process.write(process.open("/f", os.O_WRONLY | os.O_DSYNC), b"B")


BARRIERS = {
    "fsync": _fsync,
    "fdatasync": lambda process: Calls(process).fdatasync("f"),
    "fsync of a directory": lambda process: Calls(process).fsync(),
    "synchronous write": _write_synced,
    **{f"failed fsync {policy.value}": _failed_fsync(policy) for policy in SyncFailure},
}


def test_names_are_in_order_without_a_barrier() -> None:
    process = _running()
    _two_names(process)
    assert _in_order(process)
    assert not _in_order_under(POSIX)
    assert _in_order_under(XFS)


def _in_order_under(model: PersistenceModel) -> bool:
    process = _running(model)
    _two_names(process)
    return _in_order(process)


@pytest.mark.parametrize("barrier", BARRIERS.values(), ids=list(BARRIERS))
def test_a_barrier_begins_a_log_tree(barrier: Callable[[Process], None]) -> None:
    process = _running()
    barrier(process)
    _two_names(process)
    assert not _in_order(process)


def test_names_that_were_changed_before_the_barrier_are_out_of_order() -> None:
    process = _running()
    calls = Calls(process)
    calls.create("o")
    process.sync()
    _two_names(process)
    assert _in_order(process)
    calls.fsync("o")
    assert not _in_order(process)
    assert process.disk.unsynced().allows_more


def test_a_sync_ends_the_log_tree() -> None:
    process = _running()
    _fsync(process)
    process.sync()
    _two_names(process)
    assert _in_order(process)


def test_a_kill_keeps_the_log_tree() -> None:
    process = _running()
    _fsync(process)
    killed = process.disk.snapshot()
    assert LogTree() in killed.unsynced
    after = Process(Disk(killed, BTRFS))
    _two_names(after)
    assert not _in_order(after)
    unsynced = after.disk.unsynced()
    assert unsynced.copy().ordering.order == unsynced.ordering.order


def test_a_power_cut_ends_the_log_tree() -> None:
    process = _running()
    _fsync(process)
    after = Process(Disk(process.disk.power_cut(SurvivorSet()), BTRFS))
    _two_names(after)
    assert _in_order(after)


def test_an_operation_alone_is_ordered_as_in_its_journal() -> None:
    process = _running()
    _fsync(process)
    process.link("/f", "/g")
    ((_, alone, _),) = alone_along(process.disk.journal, BTRFS, {2})
    assert alone.log_tree
