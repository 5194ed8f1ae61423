"""The first pass over a recording that leaves few images: all are found, and it says so."""

from __future__ import annotations

import pytest
from hypothesis import given

from oracles.history import History, HistoryEntry
from powercut.explorer.journals import Journals
from powercut.explorer.limits import Limits
from powercut.fuse import crash_search
from powercut.fuse.crash_search import search
from sim.disk.calls.process import Process
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import MODELS, POSIX, PersistenceModel
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.programs import PROGRAMS, Program, disk_after
from tests.unit.fuse.journals import acknowledged, all_keys, put, replacing


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_image_of_a_small_journal_is_found(model: PersistenceModel) -> None:
    journal = replacing()
    found = search(journal, acknowledged(journal), model)
    cuts = {each.key[1] for each in found.found}
    assert found.exhaustive
    assert all_keys(journal, model) <= cuts
    assert len({each.key for each in found.found}) == len(found.found)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@given(program=PROGRAMS)
def test_a_search_is_exhaustive_only_if_it_finds_all_images_that_explore_builds(
    model: PersistenceModel, program: Program
) -> None:
    journal = disk_after(program).journal
    entries = [HistoryEntry(number, True, number) for number in range(0, len(journal) + 1, 2)]
    history = History(lambda: 0, entries=entries)
    found = search(journal, history, model)
    if found.exhaustive:
        journals = Journals(history, Limits(states_per_point=1 << 14), lambda _key, _crashes: True)
        keys = {crashed.key[:2] for crashed in journals.crashes(journal, model)}
        assert journals.exhaustive
        assert {each.key for each in found.found} == keys


def extracted() -> Journal:
    """Extract a file as ``unzip`` does, then sync: many pieces that leave few images."""
    process = Process(Disk())
    process.mkdir("/s")
    put(process, "/s/f", b"content")
    for path in ("/s/f", "/s"):
        process.utime(path, (1, 1))
        process.chmod(path, 0o600)
    process.sync()
    return process.disk.journal


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_few_images_of_many_pieces_are_all_found(model: PersistenceModel) -> None:
    journal = extracted()
    unsynced = Unsynced(model, journal.image.platter)
    for number, operation in enumerate(journal[:-1], 1):
        unsynced.advance(operation, number)
    assert len(unsynced.micros) > 8 or model.sequential
    found = search(journal, acknowledged(journal), model)
    assert found.exhaustive
    assert {each.key[1] for each in found.found} == all_keys(journal, model)


@pytest.mark.parametrize(("name", "most"), [("_MOST_IMAGES", 20), ("_MOST_STEPS", 40)])
def test_too_many_images_are_not_all_sought(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = extracted()
    all_found = len(search(journal, acknowledged(journal), POSIX).found)
    monkeypatch.setattr(crash_search, name, most)
    found = search(journal, acknowledged(journal), POSIX)
    assert (found.exhaustive, len(found.found) < all_found) == (False, True)


def test_a_search_that_passes_over_an_acknowledgement_is_not_exhaustive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crash_search, "_MOST_IMAGES", 1)
    process = Process(Disk())
    for number in range(8):
        process.mkdir(f"/{number}")
        process.sync()
    journal = process.disk.journal
    entries = [HistoryEntry(number, True, number) for number in range(1, len(journal) + 1)]
    history = History(lambda: 0, entries=entries)
    assert search(journal, history, POSIX).exhaustive
    monkeypatch.setattr(crash_search, "_WORK_OF_ACKNOWLEDGEMENTS", 1)
    assert not search(journal, history, POSIX).exhaustive


@pytest.mark.parametrize("name", ["scc", "ext4-journal"])
def test_images_of_a_model_that_keeps_all_in_order_are_all_found(name: str) -> None:
    process = Process(Disk())
    for number in range(12):
        process.mkdir(f"/{number}")
    journal, model = process.disk.journal, MODELS[name]
    found = search(journal, acknowledged(journal), model)
    assert found.exhaustive
    assert {each.key[1] for each in found.found} >= all_keys(journal, model)
