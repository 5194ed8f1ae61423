"""btrfs logs a file at a barrier on it, or with its names: else a truncation needs a commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import BTRFS, POSIX, PersistenceModel
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared
from tests.litmus.observer import FailedSyncs


def _prepare(calls: Calls) -> None:
    for name in ("f", "o", "p"):
        calls.write(name, "A3")
    calls.link("f", "g")


def _process(model: PersistenceModel = BTRFS) -> Process:
    return Process(Disk(prepared(_prepare), model))


def _cut(process: Process, size: int = 1) -> Calls:
    """Sync a file, then truncate it after changes of others."""
    calls = Calls(process)
    calls.fsync("f")
    calls.unlink("o")
    calls.truncate("p", 0)
    calls.truncate("f", size)
    return calls


def _awaited(process: Process) -> list[str]:
    """Return the pieces for which the last size waits."""
    ordering = process.disk.unsynced().ordering
    texts = [str(micro) for micro in ordering.micros]
    last = max(index for index, text in enumerate(texts) if text.startswith("size"))
    return [text for index, text in enumerate(texts) if ordering.order[last] >> index & 1]


CHANGES = ["removal of directory entry 'o'", "size of inode 4, 0 bytes"]


@pytest.mark.parametrize("size", [1, 9])
def test_a_truncation_waits_for_all_earlier_metadata(size: int) -> None:
    process = _process()
    _cut(process, size)
    assert _awaited(process) == CHANGES


def test_the_rule_is_of_btrfs() -> None:
    process = _process(POSIX)
    _cut(process)
    assert _awaited(process) == []


def test_other_changes_of_the_file_overtake() -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("f")
    calls.unlink("o")
    calls.chmod("f", 0o600)
    calls.append("f", "B1")
    assert not any(process.disk.unsynced().ordering.order)


def test_a_truncation_waits_for_all_parts_of_a_rename() -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("f")
    calls.rename("o", "q")
    calls.rename("q", "r")
    calls.truncate("f", 1)
    assert len(_awaited(process)) == len(process.disk.unsynced().micros) - 3 == 3


def test_a_barrier_on_another_file_changes_nothing() -> None:
    process = _process()
    calls = _cut(process)
    calls.create("q")
    calls.fsync("q")
    assert _awaited(process) == CHANGES
    assert not process.disk.unsynced().allows_more


def _rename(calls: Calls) -> None:
    calls.rename("f", "h")


def _link(calls: Calls) -> None:
    calls.link("f", "h")


def _unlink(calls: Calls) -> None:
    calls.unlink("g")


def _replace_a_name(calls: Calls) -> None:
    calls.rename("p", "g")


name_change = pytest.mark.parametrize("change", [_rename, _link, _unlink, _replace_a_name])


@name_change
def test_a_later_change_of_a_name_frees_it(change: Callable[[Calls], None]) -> None:
    process = _process()
    change(_cut(process))
    assert process.disk.unsynced().allows_more
    ordering = process.disk.unsynced().ordering
    texts = [str(micro) for micro in ordering.micros]
    assert ordering.order[texts.index("size of inode 2, 1 bytes")] == 0


@name_change
def test_a_barrier_on_the_directory_does_not_hold_it_again(
    change: Callable[[Calls], None],
) -> None:
    process = _process()
    calls = Calls(process)
    calls.mkdir("d")
    calls.write("d/o", "A1")
    calls.sync()
    calls.fsync("f")
    calls.unlink("d/o")
    calls.truncate("f", 1)
    change(calls)
    calls.fsync()
    ordering = process.disk.unsynced().ordering
    texts = [str(micro) for micro in ordering.micros]
    assert "removal of directory entry 'o'" in texts
    assert ordering.order[texts.index("size of inode 2, 1 bytes")] == 0


@name_change
def test_an_earlier_unsynced_change_of_a_name_lets_it_overtake(
    change: Callable[[Calls], None],
) -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("f")
    calls.unlink("o")
    descriptor = process.open("/f", os.O_WRONLY)
    change(calls)
    process.ftruncate(descriptor, 1)
    assert _awaited(process) == []
    process.fsync(descriptor)
    calls.create("q")
    process.ftruncate(descriptor, 0)
    assert "directory entry 'q'" in _awaited(process)


def test_a_rename_over_its_last_name_frees_it() -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("p")
    calls.unlink("o")
    calls.truncate("p", 1)
    assert _awaited(process)
    calls.rename("f", "p")
    assert process.disk.unsynced().allows_more
    assert _awaited(process) == []


def test_without_a_barrier_on_the_file_it_overtakes() -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("p")
    calls.unlink("o")
    calls.truncate("f", 1)
    assert _awaited(process) == []


def test_a_barrier_that_covers_nothing_does_not_hold_it() -> None:
    process = _process()
    calls = Calls(process)
    replaced = process.open("/p", os.O_RDWR)
    calls.rename("o", "p")
    process.fsync(replaced)
    calls.unlink("g")
    process.ftruncate(replaced, 1)
    assert _awaited(process) == []
    assert _awaited(Process(Disk(process.disk.snapshot(), BTRFS))) == []


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_barrier_on_the_file_that_fails_frees_it(policy: SyncFailure) -> None:
    process = _process()
    _cut(process)
    _fail_fsync(process, "f", policy)
    assert process.disk.unsynced().allows_more
    assert _awaited(process) == []


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_barrier_on_another_file_that_fails_does_not(policy: SyncFailure) -> None:
    process = _process()
    _cut(process)
    _fail_fsync(process, "p", policy)
    assert "removal of directory entry 'o'" in _awaited(process)


def test_a_change_of_a_name_frees_nothing_without_a_truncation() -> None:
    process = _process()
    calls = Calls(process)
    calls.append("f", "B1")
    calls.fsync("f")
    calls.rename("f", "h")
    assert not process.disk.unsynced().allows_more


def test_a_copy_knows_the_last_changes_of_names() -> None:
    process = _process()
    calls = Calls(process)
    calls.fsync("f")
    calls.rename("f", "h")
    copy = process.disk.unsynced().copy()
    calls.unlink("o")
    calls.truncate("h", 1)
    for number in (-2, -1):
        copy.advance(process.disk.journal[number], process.disk.operations + number + 1)
    assert copy.ordering.order == process.disk.unsynced().ordering.order
    assert _awaited(process) == []


def test_it_waits_also_after_a_kill() -> None:
    process = _process()
    _cut(process)
    after = Process(Disk(process.disk.snapshot(), BTRFS))
    assert _awaited(after) == CHANGES
    Calls(after).create("q")
    again = Process(Disk(after.disk.snapshot(), BTRFS))
    assert _awaited(again) == CHANGES
    Calls(again).link("f", "h")
    assert again.disk.unsynced().allows_more
    assert _awaited(again) == []


def test_after_a_kill_it_waits_no_more_if_it_did_not_before() -> None:
    process = _process()
    _rename(_cut(process))
    after = Process(Disk(process.disk.snapshot(), BTRFS))
    assert _awaited(after) == []


def _fail_fsync(process: Process, name: str, policy: SyncFailure) -> None:
    process.disk.interposer = FailedSyncs(policy)
    with suppress(OSError):
        Calls(process).fsync(name)
    process.disk.interposer = None
