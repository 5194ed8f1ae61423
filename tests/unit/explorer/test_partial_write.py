"""The kills of a long write are those of its prefixes, and cost no more than the write."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from faults.crash_counter import page_prefixes
from oracles.history import History
from powercut.explorer.crash_state import read_journal
from powercut.explorer.journals import Journals
from powercut.explorer.lazy.crash_sites import crash_sites
from powercut.explorer.limits import Limits
from powercut.explorer.partial_write import PartialWrite
from powercut.fuse import crash_search
from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.operation import Write
from sim.disk.calls.process import Process
from sim.disk.crash.journal import Journal
from sim.disk.crash.notes import OldTail
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

LARGE = bytes(range(1, 256)) * 4_112  # 1 MB, in 256 pages


def _journal() -> Journal:
    """Return operations of which the last is a write over five pages, above unsynced ones."""
    disk = Disk()
    process = Process(disk)
    descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, LARGE[:9_000])
    process.ftruncate(descriptor, 5_000)
    process.fsync(descriptor)
    process.pwrite(descriptor, b"other", 7_000)
    process.rename("/f", "/g")
    process.pwrite(descriptor, LARGE[:18_000], 3_000)
    return disk.journal


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
@pytest.mark.parametrize("reduced", [None, 0, 30, 60])
def test_parts_are_those_of_the_prefixes(model: PersistenceModel, reduced: int | None) -> None:
    """The write has 37 sectors, which one file may have if there are 60."""
    journal = _journal()
    if reduced is not None:
        model = model.with_most_sectors(reduced) if reduced else model.with_whole_calls()
    number = len(journal)
    unsynced, cache = read_journal(journal, model, number - 1)
    write = journal[-1]
    assert isinstance(write, Write)
    before = cache.key, unsynced.carried_over(number)
    partial = PartialWrite(write, number, unsynced, cache)
    kept = page_prefixes(write, model)
    assert len(kept) == 5
    for size in partial.prefixes(kept):
        expected, expected_cache = read_journal(journal, model, number - 1)
        part = write._replace(data=write.data[:size])
        expected.advance(part, number)
        expected_cache.advance(part, expected)
        assert partial.cache.key == expected_cache.key
        assert partial.unsynced.carried_over(number) == expected.carried_over(number)
        assert partial.unsynced.ordering.order == expected.ordering.order
    assert (cache.key, unsynced.carried_over(number)) == before


def test_a_part_keeps_the_notes_of_earlier_barriers() -> None:
    journal = _journal()
    unsynced, cache = read_journal(journal, MODELS["btrfs"], len(journal) - 1)
    write = journal[-1]
    assert isinstance(write, Write)
    partial = PartialWrite(write, len(journal), unsynced, cache)
    next(partial.prefixes(page_prefixes(write, MODELS["btrfs"])))
    carried = partial.unsynced.carried_over(len(journal))
    assert any(isinstance(each, OldTail) for each in carried)


def _one_write() -> Journal:
    disk = Disk()
    process = Process(disk)
    process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), LARGE)
    return disk.journal


def _lazy(journal: Journal, model: PersistenceModel) -> Iterator[object]:
    return crash_sites(journal, History(lambda: 0), model, 0, nested=False)


def _built(journal: Journal, model: PersistenceModel) -> Iterator[object]:
    limits = Limits(states_per_point=1, samples=1)
    return Journals(History(lambda: 0), limits, lambda _key, _depth: False).crashes(journal, model)


def _searched(journal: Journal, model: PersistenceModel) -> Iterator[object]:
    return iter(crash_search.search(journal, History(lambda: 0), model).found)


@pytest.mark.parametrize("crashes", [_lazy, _built, _searched])
def test_the_kills_of_a_write_cost_as_much_as_the_write(
    crashes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(crashes)
    journal = _one_write()
    written = 0
    write = Inode.write

    def counted(inode: Inode, offset: int, data: bytes) -> None:
        nonlocal written
        written += len(data)
        write(inode, offset, data)

    monkeypatch.setattr(Inode, "write", counted)
    for _ in crashes(journal, MODELS["scc"]):
        pass
    # The kills, the operation itself, and the states of the power cut after it.
    assert len(LARGE) <= written <= 4 * len(LARGE)


def test_pieces_are_cut_only_for_a_recovery_that_is_crashed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = _one_write()
    cut = 0
    carried_over = Unsynced.carried_over

    def counted(unsynced: Unsynced, operations: int) -> object:
        nonlocal cut
        cut += 1
        return carried_over(unsynced, operations)

    monkeypatch.setattr(Unsynced, "carried_over", counted)
    sites = [*_lazy(journal, MODELS["ext4"])]
    assert cut == 0
    assert len(sites) > len(LARGE) // BLOCK_BYTES
    nested = [*crash_sites(journal, History(lambda: 0), MODELS["scc"], 0, nested=True)]
    assert cut == sum(each.layer is None for each in nested)
