"""btrfs logs the rename of a file that is in the log: no later change overtakes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import BTRFS, POSIX, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared
from tests.litmus.observer import FailedSyncs


def _prepare(calls: Calls) -> None:
    for name in ("f", "o", "p"):
        calls.write(name, "A1")


def _process(model: PersistenceModel = BTRFS) -> Process:
    return Process(Disk(prepared(_prepare), model))


def _replaced(process: Process) -> Calls:
    """Replace ``f`` as programs do: a new file, fsync, rename."""
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    calls.rename("t", "f")
    return calls


def _followers(process: Process) -> list[str]:
    """Return the unsynced pieces that wait for the rename to ``f``."""
    ordering = process.disk.unsynced().ordering
    texts = [str(micro) for micro in ordering.micros]
    rename = 1 << texts.index("rename of 't' to 'f'")
    return [
        text for text, order in zip(texts, ordering.order, strict=True) if order & rename
    ]  # fmt: skip


def test_later_metadata_of_other_files_waits_for_the_rename() -> None:
    process = _process()
    calls = _replaced(process)
    calls.unlink("o")
    calls.append("p", "C1")
    calls.append("f", "C1")
    calls.create("q")
    assert _followers(process) == [
        "removal of directory entry 'o'",
        "size of inode 4, 2 bytes",
        "directory entry 'q'",
    ]


def test_a_barrier_on_another_file_changes_nothing_for_what_came_before_it() -> None:
    process = _process()
    calls = _replaced(process)
    calls.unlink("o")
    calls.fsync("p")
    calls.create("q")
    assert _followers(process) == ["removal of directory entry 'o'"]
    calls.fsync("p")
    assert _followers(process) == ["removal of directory entry 'o'"]


def test_a_barrier_on_a_file_may_log_its_changes() -> None:
    process = _process()
    process.link("/p", "/q")
    process.sync()
    calls = _replaced(process)
    calls.unlink("q")
    assert _followers(process) == ["removal of directory entry 'q'"]
    calls.fsync("p")
    assert process.disk.unsynced().allows_more
    assert _followers(process) == []


@pytest.mark.parametrize(
    "barrier",
    [
        lambda process: Calls(process).fsync(),
        lambda process: Calls(process).fsync("f"),
        lambda process: process.sync(),
    ],
    ids=["fsync of the directory", "fsync of the file", "sync"],
)
def test_a_rename_that_is_durable_is_forgotten(barrier: Callable[[Process], None]) -> None:
    process = _process()
    calls = _replaced(process)
    barrier(process)
    calls.append("p", "C1")
    calls.fsync("p")
    calls.append("p", "C1")
    calls.fsync("p")
    assert not process.disk.unsynced().allows_more


def test_what_the_rename_needs_comes_with_it() -> None:
    process = _process()
    calls = Calls(process)
    calls.mkdir("d")
    calls.write("t", "B1")
    calls.fsync("t")
    calls.rename("t", "d/t")
    calls.unlink("o")
    ordering = process.disk.unsynced().ordering
    creation, _, new_name, _, _ = map(str, ordering.micros)
    assert (creation, new_name) == ("create inode 5", "directory entry 't'")
    assert ordering.order[-1] == 0b101


def test_only_btrfs_logs_renames() -> None:
    process = _process(POSIX)
    _replaced(process).unlink("o")
    assert _followers(process) == []


def test_what_came_before_the_rename_waits_for_nothing() -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    calls.unlink("o")
    calls.rename("t", "f")
    assert _followers(process) == []


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_barrier_that_fails_lets_other_changes_overtake_it(policy: SyncFailure) -> None:
    process = _process()
    calls = _replaced(process)
    calls.unlink("o")
    _fail_fsync(process, "p", policy)
    calls.create("q")
    assert _followers(process) == []


@pytest.mark.parametrize("policy", SyncFailure)
def test_the_file_may_have_left_the_log_before_a_barrier_that_failed(policy: SyncFailure) -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    _fail_fsync(process, "p", policy)
    calls.fsync("t")
    calls.rename("t", "f")
    calls.unlink("o")
    assert _followers(process) == []


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_barrier_that_fails_takes_the_file_out_of_the_log(policy: SyncFailure) -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    _fail_fsync(process, "p", policy)
    calls.rename("t", "f")
    calls.unlink("o")
    assert _followers(process) == []


def test_another_barrier_on_the_file_leaves_it_in_the_log() -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    calls.fsync("t")
    calls.rename("t", "f")
    calls.unlink("o")
    assert _followers(process) == ["removal of directory entry 'o'"]


def test_a_barrier_that_covers_nothing_lets_later_changes_overtake_it() -> None:
    process = _process()
    replaced = process.open("/o", os.O_RDWR)
    process.rename("/p", "/o")
    calls = _replaced(process)
    process.fsync(replaced)
    calls.create("q")
    assert _followers(process) == []


def test_a_further_change_of_its_names_frees_what_came_before() -> None:
    process = _process()
    calls = _replaced(process)
    calls.unlink("o")
    assert _followers(process)
    calls.link("p", "t")
    unsynced = process.disk.unsynced()
    assert unsynced.allows_more
    assert _followers(process) == []


@pytest.mark.parametrize("change", [Calls.link, Calls.rename])
def test_so_does_another_name_of_the_file(change: Callable[[Calls, str, str], None]) -> None:
    process = _process()
    calls = _replaced(process)
    calls.unlink("o")
    assert _followers(process)
    change(calls, "f", "h")
    assert process.disk.unsynced().allows_more
    assert "removal of directory entry 'o'" not in _followers(process)


def test_a_copy_continues_with_the_rename() -> None:
    process = _process()
    calls = _replaced(process)
    copy = process.disk.unsynced().copy()
    calls.unlink("o")
    copy.advance(process.disk.journal[-1], process.disk.operations)
    assert copy.ordering.order == process.disk.unsynced().ordering.order
    assert process.disk.unsynced().copy().ordering.order == copy.ordering.order


def test_a_copy_knows_which_files_are_in_the_log() -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    copy = process.disk.unsynced().copy()
    calls.fsync("p")
    calls.rename("t", "f")
    calls.unlink("o")
    for number in (-3, -2, -1):
        copy.advance(process.disk.journal[number], process.disk.operations + number + 1)
    assert copy.ordering.order == process.disk.unsynced().ordering.order == [0, 0]


def test_the_next_process_does_not_overtake_it_after_a_kill() -> None:
    process = _process()
    _replaced(process)
    after = Process(Disk(process.disk.snapshot(), BTRFS))
    Calls(after).unlink("o")
    assert _followers(after) == ["removal of directory entry 'o'"]


def test_a_kill_leaves_a_file_in_the_log() -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    after = Process(Disk(process.disk.snapshot(), BTRFS))
    Calls(after).rename("t", "f")
    Calls(after).unlink("o")
    assert _followers(after) == ["removal of directory entry 'o'"]


def test_a_power_cut_leaves_no_file_in_the_log() -> None:
    process = _process()
    calls = Calls(process)
    calls.write("t", "B1")
    calls.fsync("t")
    after = Process(Disk(process.disk.power_cut(SurvivorSet()), BTRFS))
    calls = Calls(after)
    calls.fsync("p")
    calls.rename("t", "f")
    calls.unlink("o")
    assert _followers(after) == []


def _fail_fsync(process: Process, name: str, policy: SyncFailure) -> None:
    process.disk.interposer = FailedSyncs(policy)
    with suppress(OSError):
        Calls(process).fsync(name)
    process.disk.interposer = None
