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


def _pieces(process: Process) -> list[str]:
    return [str(piece) for piece in process.disk.unsynced().micros]


WHOLE = ["rename of 't' to 'f'"]
IN_PARTS = ["removal of directory entry 'f'", *WHOLE]
MOVED = ["directory entry 'm'", "removal of directory entry 'f'"]


def _replace_one_of_two_names(process: Process) -> None:
    calls = Calls(process)
    calls.write("t", "B1")
    calls.link("f", "g")
    process.sync()
    calls.rename("t", "f")


def test_a_rename_is_in_parts_only_while_there_is_a_log_tree() -> None:
    process = _running()
    _replace_one_of_two_names(process)
    assert _pieces(process) == WHOLE
    Calls(process).fsync("g")
    assert _pieces(process) == IN_PARTS
    assert process.disk.unsynced().allows_more


def test_a_rename_into_another_directory_is_in_parts_only_while_there_is_a_log_tree() -> None:
    process = _running()
    calls = Calls(process)
    calls.mkdir("d")
    calls.create("o")
    process.sync()
    calls.rename("f", "d/m")
    assert _pieces(process) == ["rename of 'f' to 'm'"]
    calls.fsync("o")
    assert _pieces(process) == MOVED
    process.sync()
    calls.rename("d/m", "f")
    assert _pieces(process) == ["rename of 'm' to 'f'"]


@pytest.mark.parametrize("last", ["rename", "unlink"])
def test_a_durable_name_is_a_piece_of_its_own_only_while_there_is_a_log_tree(last: str) -> None:
    process = _running()
    calls = Calls(process)
    calls.create("o")
    process.sync()
    calls.rename("f", "g")
    if last == "rename":
        calls.rename("g", "h")
    else:
        calls.unlink("g")
    assert len(_pieces(process)) == 2
    calls.fsync("o")
    *_, forgotten = _pieces(process)
    assert forgotten == "removal of the first directory entry 'f'"


def test_a_kill_keeps_a_rename_whole_until_a_log_tree_begins() -> None:
    process = _running()
    _replace_one_of_two_names(process)
    after = Process(Disk(process.disk.snapshot(), BTRFS))
    assert _pieces(after) == WHOLE
    Calls(after).fsync("g")
    assert _pieces(after) == IN_PARTS


def test_a_torn_rename_is_torn_without_a_log_tree_too() -> None:
    process = _running(BTRFS.with_torn_rename())
    _replace_one_of_two_names(process)
    assert len(_pieces(process)) == 3
    pieces = _pieces(process)
    Calls(process).fsync("g")
    assert _pieces(process) == pieces


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
