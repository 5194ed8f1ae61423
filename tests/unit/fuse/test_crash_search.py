"""The first pass: images by rank, whole calls for large writes, and failures left by barriers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import pytest

from faults.crash_point import CrashKind, Phase
from oracles.history import History, HistoryEntry, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.crash_state import image_at
from powercut.explorer.event import events_of
from powercut.explorer.large_writes import CUT_SECTORS, fitting
from powercut.explorer.missing_barrier import MissingBarrier, Synced, insert
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.repair import Repair, repair
from powercut.explorer.verdicts import Exploration, Failure, InterruptedRecovery
from powercut.fuse import crash_search
from powercut.fuse.crash_search import MOST_SECTORS, built, search
from powercut.fuse.failures_left import FailuresLeft
from powercut.fuse.found_image import Rank, best
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.key import key_of
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import EXT4, EXT4_ORDERED, MODELS, POSIX, PersistenceModel
from sim.disk.disk import Disk
from tests.unit.fuse.journals import acknowledged, all_keys, put, replacing


class _NoChecker:
    """Checks nothing."""

    takes_known = True

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        raise NotImplementedError

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        raise NotImplementedError

    def image(self, found: Exploration, failure: Failure) -> Image:
        raise NotImplementedError

    def is_over(self, found: Exploration) -> bool:
        raise NotImplementedError

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        raise NotImplementedError


NO_CHECKER = _NoChecker()


def test_images_of_a_long_journal_are_sampled_with_every_prefix() -> None:
    disk = Disk()
    process = Process(disk)
    for number in range(30):
        put(process, f"/{number}", b"data")
    found = search(disk.journal, acknowledged(disk.journal), EXT4_ORDERED)
    ranks = {each.rank for each in found.found}
    assert not found.exhaustive
    assert {Rank.EXTREME, Rank.PREFIX, Rank.ONE_LOST, Rank.ONE_ALONE} <= ranks
    kills = [each for each in found.found if each.crash.kind is CrashKind.KILL]
    assert {each.done for each in kills} == set(range(len(disk.journal) + 1))


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("ext4-ordered", set()),
        ("ext4-writeback", {Rank.STALE}),
        ("posix", {Rank.STALE, Rank.TORN}),
    ],
)
def test_a_long_journal_has_the_damage_that_its_model_allows(name: str, ranks: set[Rank]) -> None:
    disk = Disk()
    for number in range(30):
        put(Process(disk), f"/{number}", b"data")
    found = search(disk.journal, acknowledged(disk.journal), MODELS[name]).found
    # At the first points all states are found, also those with more damage.
    damaged = [
        each for each in found if each.rank >= Rank.TORN and each.done > len(disk.journal) // 2
    ]
    assert {each.rank for each in damaged} == ranks
    for each in damaged:
        survivors = each.crash.survivors
        assert all(kept == len(b"data") // 2 for _, kept in survivors.torn)
        assert (len(survivors.torn), len(survivors.stale)) in {(1, 0), (0, 1)}


def test_a_short_run_has_many_random_images() -> None:
    """A copy and its original may lose any of eight sectors each; both losses together do harm."""
    disk = Disk()
    for name in ("/copy", "/original"):
        put(Process(disk), name, b"page" * 1024)
    found = search(disk.journal, acknowledged(disk.journal), EXT4_ORDERED)
    assert not found.exhaustive
    at_end = [each for each in found.found if each.done == len(disk.journal)]
    assert sum(each.rank is Rank.OTHER for each in at_end) > 8


def test_many_acknowledgements_do_not_multiply_the_images() -> None:
    disk = Disk()
    process = Process(disk)
    descriptor = process.open("/log", os.O_CREAT | os.O_WRONLY)
    for _ in range(200):
        process.write(descriptor, b"line")
    entries = [HistoryEntry(number + 2, True, "line") for number in range(200)]
    found = search(disk.journal, History(lambda: 0, entries=entries), EXT4_ORDERED)
    assert len(found.found) < 16_000, "most of them will never be checked"
    seen = [each for each in found.found if each.rank is Rank.ONE_LOST]
    visited = {each.done for each in seen}
    assert len(visited) > 190, "an acknowledgement without its own images"
    assert max(visited) == len(disk.journal)


@pytest.mark.parametrize(("pages", "is_exhaustive"), [(4, True), (9, False)])
def test_kills_within_a_long_write_are_a_sample(pages: int, is_exhaustive: bool) -> None:
    disk = Disk()
    put(Process(disk), "/f", b"data" * (pages << 10))
    found = search(disk.journal, acknowledged(disk.journal), MODELS["scc"])
    kills = [each for each in found.found if each.crash.phase is Phase.DURING]
    assert (found.exhaustive, len(kills) == pages - 1) == (is_exhaustive, is_exhaustive)


def copied(mebibytes: int) -> Journal:
    """Write a file in pieces of 1 MiB, and rename it, without a barrier."""
    process = Process(Disk())
    descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
    for number in range(1, mebibytes + 1):
        process.write(descriptor, bytes([number]) * (1 << 20))
    process.close(descriptor)
    process.rename("/t", "/f")
    return process.disk.journal


def test_the_rename_behind_a_series_of_large_writes_is_crashed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crash_search, "_WORK_WITHIN_SERIES", 1)
    monkeypatch.setattr(crash_search, "_WORK_OF_POINT", 1)
    journal = copied(8)
    found = search(journal, History(lambda: 0), POSIX)
    assert found.points < found.all_points
    assert {1, len(journal) - 1, len(journal)} <= {each.done for each in found.found}
    cuts = [each for each in found.found if each.done == len(journal) and each.losses]
    lost = {each.crash.survivors.lost for each in cuts}
    newest = max(index for each in lost for index in each)
    assert {(newest,), (newest - 1,)} <= lost, "the size, and the data, of the last write"


def test_crash_points_within_a_series_of_writes_come_last() -> None:
    found = search(copied(8), History(lambda: 0), POSIX).found
    first = [each for each in best(found, len(found)) if each.rank is Rank.ONE_LOST][:12]
    assert {each.done for each in first} == {9, 10}


def test_writes_beyond_the_limit_are_lost_in_halves() -> None:
    disk = Disk()
    process = Process(disk)
    put(process, "/f", bytes(512 * MOST_SECTORS))
    assert fitting(POSIX, disk.journal, MOST_SECTORS) is POSIX
    put(process, "/g", b"s")
    model = fitting(POSIX, disk.journal, MOST_SECTORS)
    assert model == POSIX.with_most_sectors(CUT_SECTORS)
    found = search(disk.journal, acknowledged(disk.journal), POSIX)
    assert not found.exhaustive
    assert all_keys(disk.journal, POSIX.with_whole_calls()) < all_keys(disk.journal, model)
    kept = {len(image.files().get("/f", b"")) for _, image in built(disk.journal, found.found)}
    assert {0, 512 * MOST_SECTORS // 2, 512 * MOST_SECTORS} <= kept


def test_a_page_behind_large_writes_is_torn_in_its_middle() -> None:
    disk = Disk()
    process = Process(disk)
    page = process.open("/page", os.O_CREAT | os.O_RDWR)
    process.write(page, b"a" * 2 * BLOCK_BYTES)
    process.sync()
    for name in ("/cache", "/other"):
        put(process, name, bytes(512 * MOST_SECTORS * 2 // 3))
        put(process, name, bytes(512 * MOST_SECTORS // 3))
    process.pwrite(page, b"b" * 2 * BLOCK_BYTES, 0)
    found = search(disk.journal, acknowledged(disk.journal), EXT4)
    images = {image.files().get("/page") for _, image in built(disk.journal, found.found)}
    old, new = b"a" * BLOCK_BYTES, b"b" * BLOCK_BYTES
    assert {old + old, old + new, new + old, new + new} <= images


@pytest.mark.parametrize("model", ["ext4", "xfs", "posix"])
def test_a_page_beside_a_large_write_is_torn_between_two_sectors(model: str) -> None:
    disk = Disk()
    process = Process(disk)
    put(process, "/large", bytes(512 * MOST_SECTORS + 1))
    page = process.open("/page", os.O_CREAT | os.O_RDWR)
    process.write(page, b"a" * 1024)
    process.sync()
    put(process, "/large", bytes(512 * MOST_SECTORS + 1))
    process.pwrite(page, b"b" * 1024, 0)
    found = search(disk.journal, acknowledged(disk.journal), MODELS[model])
    images = {
        image.files()["/page"]
        for _, image in built(disk.journal, found.found)
        if "/page" in image.files()
    }
    assert {b"a" * 512 + b"b" * 512, b"b" * 512 + b"a" * 512} <= images


def test_sync_of_all_files_leaves_no_large_write() -> None:
    disk = Disk()
    process = Process(disk)
    for name in ("/f", "/g"):
        put(process, name, bytes(512 * MOST_SECTORS))
        process.sync()
    assert fitting(POSIX, disk.journal, MOST_SECTORS) is POSIX


def failing_keys(journal: Journal, history: History, model: PersistenceModel) -> list[Failure]:
    """Every image in which /f is neither old nor new, or old after the acknowledgement."""
    failures = []
    for each in search(journal, history, model).found:
        image = image_at(journal, model, each.crash)
        allowed = (b"new",) if each.entries else (b"old", b"new")
        if image.files().get("/f") not in allowed:
            violation = LostAck("it is lost")
            failures.append(Failure((each.crash,), each.entries, each.key[1], violation))
    return failures


@pytest.mark.parametrize("synced", [Synced.FILE, Synced.DIRECTORY])
@pytest.mark.parametrize("name", ["scc", "ext4", "xfs", "btrfs", "posix"])
def test_failures_left_by_a_barrier_are_those_of_the_changed_journal(
    name: str, synced: Synced
) -> None:
    model, journal = MODELS[name], replacing()
    workload = RecordedWorkload(journal, acknowledged(journal))
    failures = failing_keys(journal, workload.history, model)
    exploration = Exploration(model, workload, NO_CHECKER, failures=failures)
    *_, write, rename, ack = events_of(workload)
    first, last = (write, rename) if synced is Synced.FILE else (rename, ack)
    changed = insert(workload, MissingBarrier(synced, first.site, last.site)).workload
    assert len(changed.journal) == len(journal) + 1
    left = FailuresLeft(exploration, {}).of(changed)
    expected = failing_keys(changed.journal, changed.history, model)
    assert {each.state for each in left.failures} == {each.state for each in expected}
    assert len(left.failures) < len(failures) or name == "scc"
    for each in left.failures:
        image = image_at(changed.journal, model, each.crashes[0])
        assert key_of(image.platter.values()) == each.image


DIRECTORIES = ("/tmp", "/new", "/cur")


def moved_twice(*, linked: bool) -> RecordedWorkload:
    """Move a mail from one directory to the next, twice, by links if ``linked``; sync neither."""
    before = Process(Disk())
    for each in DIRECTORIES:
        before.mkdir(each)
    put(before, "/tmp/0", b"mail")
    process = Process(Disk(before.disk.unmounted()))
    entries = []
    for old, new in pairwise(DIRECTORIES):
        if linked:
            process.link(f"{old}/0", f"{new}/0")
            process.unlink(f"{old}/0")
        else:
            process.rename(f"{old}/0", f"{new}/0")
        entries.append(HistoryEntry(len(process.disk.journal), True, new))
    return RecordedWorkload(process.disk.journal, History(lambda: 0, entries=entries))


def nested_renames() -> RecordedWorkload:
    """Move a file up, then into another directory, then its first directory after it."""
    before = Process(Disk())
    for each in ("/a", "/b", "/a/x"):
        before.mkdir(each)
    put(before, "/a/x/f", b"file")
    process = Process(Disk(before.disk.unmounted()))
    entries = []
    for old, new in (("/a/x/f", "/a/f"), ("/a/f", "/b/f"), ("/a", "/b/a")):
        process.rename(old, new)
        entries.append(HistoryEntry(len(process.disk.journal), True, new))
    return RecordedWorkload(process.disk.journal, History(lambda: 0, entries=entries))


def every_barrier(workload: RecordedWorkload) -> Iterator[RecordedWorkload]:
    """The workload with one barrier, for each that may be inserted."""
    for first, last in combinations(events_of(workload), 2):
        for synced in Synced:
            if first.operation is not None and synced.inode_of(first.operation):
                barrier = MissingBarrier(synced, first.site, last.site)
                yield insert(workload, barrier).workload


@pytest.mark.parametrize("name", ["xfs", "btrfs", "posix"])
@pytest.mark.parametrize(
    ("workload", "is_exhaustive"),
    [
        (moved_twice(linked=False), True),
        (moved_twice(linked=False), False),
        (moved_twice(linked=True), True),
        (nested_renames(), True),
        (nested_renames(), False),
    ],
    ids=["renames", "renames-sampled", "links", "nested", "nested-sampled"],
)
def test_no_barrier_prevents_an_image_that_the_changed_journal_allows(
    workload: RecordedWorkload, is_exhaustive: bool, name: str
) -> None:
    model, journal = MODELS[name], workload.journal
    failures = [
        Failure((each.crash,), each.entries, each.key[1], LostAck("it is lost"))
        for each in search(journal, workload.history, model).found
    ]
    known = {each.state for each in failures}
    count = len(failures)
    exploration = Exploration(
        model, workload, NO_CHECKER, count, count, count, is_exhaustive, failures=failures
    )
    left = FailuresLeft(exploration, {})
    for changed in every_barrier(workload):
        again = {each.key for each in search(changed.journal, changed.history, model).found}
        assert {each.state for each in left.of(changed).failures} == known & again


class _NeverOver(_NoChecker):
    """Checks nothing, and has time."""

    def is_over(self, found: Exploration) -> bool:
        return False


def repaired(workload: RecordedWorkload, model: PersistenceModel) -> Repair:
    """The repair of a mail that must be in the directory of the last acknowledgement, or later."""
    failures = []
    for each in search(workload.journal, workload.history, model).found:
        files = image_at(workload.journal, model, each.crash).files().keys()
        allowed = {f"{directory}/0" for directory in DIRECTORIES[each.entries :]}
        if not files & allowed:
            failures.append(Failure((each.crash,), each.entries, each.key[1], LostAck("lost")))
    failures.sort(key=lambda each: each.simplicity)
    count = len(failures)
    exploration = Exploration(model, workload, _NeverOver(), count, count, count, failures=failures)
    left = FailuresLeft(exploration, {})
    return repair(exploration, lambda changed, _: left.of(changed))


@pytest.mark.parametrize("name", ["btrfs", "posix"])
def test_the_directory_of_the_new_name_is_synced(name: str) -> None:
    """With an fsync of the old one fewer images fail, because the removal is durable as well."""
    found = repaired(moved_twice(linked=False), MODELS[name])
    assert not found.left
    assert [each.synced for each in found.barriers] == [Synced.DIRECTORY, Synced.DIRECTORY]
