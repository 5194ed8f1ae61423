"""The gap of a missing barrier is the first place of the journal at which it makes a difference."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.crash_state import advanced
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.event import events_of
from powercut.explorer.explore import judged
from powercut.explorer.lost_pieces import LostPieces
from powercut.explorer.missing_barrier import (
    Gap,
    MissingBarrier,
    Synced,
    candidates,
    insert,
    inserted_calls,
    without_inserted,
)
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Failure
from powercut.report.findings import cause_text
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import BTRFS, EXT4, SCC
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced


def rotate(process: Process, ack: History) -> None:
    """Write three logs; before each, rename the older ones, the oldest first."""
    root = process.open("/", os.O_RDONLY)
    for rotation in range(3):
        for number in reversed(range(1, rotation + 1)):
            process.rename(f"/log.{number}", f"/log.{number + 1}")
        descriptor = process.open("/log.1", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"%d" % rotation)
        process.fsync(descriptor)
        process.fsync(root)
        ack(rotation)


def check(process: Process, known: Known) -> None:
    logs = []
    for name in process.listdir("/"):
        with process.open_file(f"/{name}", "rb") as file:
            logs.append(file.read())
    for rotation in known.acknowledged:
        if str(rotation).encode() not in logs:
            raise LostAck("a log is lost", rotation=rotation)


def test_a_gap_does_not_reach_over_a_barrier_of_the_program() -> None:
    """The renames of two rotations are apart by an fsync of their directory."""
    found = diagnose(judged(record(rotate, BTRFS, Image.empty()), check, [BTRFS]))
    gaps = [cause.gap for cause in found.causes]
    assert [(gap.first.path, gap.last.path) for gap in gaps if isinstance(gap, Gap)] == [
        ("/log.1 to /log.2", "/log.1"),
        ("/log.2 to /log.3", "/log.1 to /log.2"),
    ]


def test_a_gap_begins_with_the_latest_lost_operation_of_all_files() -> None:
    """One line writes to /f1, /f2 and /f1 again; harm is done if the last two are lost."""

    def workload(process: Process, ack: History) -> None:
        files = [process.open(name, os.O_CREAT | os.O_WRONLY) for name in ("/f1", "/f2")]
        process.sync()
        for file in (files[0], files[1], files[0]):
            process.write(file, b"x")
        ack("all")

    def check(process: Process, known: Known) -> None:
        if known.acknowledged and process.stat("/f1").st_size < 2:
            assert process.stat("/f2").st_size

    found = diagnose(judged(record(workload, EXT4, Image.empty()), check, [EXT4]))
    gap = found.causes[0].gap
    assert isinstance(gap, Gap)
    assert (gap.path, gap.first.number) == ("/f1", 6)


def test_a_gap_does_not_reach_over_a_sync_of_everything() -> None:
    def write_and_sync(process: Process, ack: History) -> None:
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"head")
        process.mkdir("/d")
        process.sync()
        ack("f")

    recorded = record(write_and_sync, EXT4, Image.empty())
    _, write, mkdir, _, ack = events_of(recorded)
    for last, count in ((mkdir, 1), (ack, 0)):
        barrier = MissingBarrier(Synced.FILE, write.site, last.site)
        assert len(insert(recorded, barrier).syncs) == count


def test_a_gap_reaches_over_an_fdatasync_except_for_written_data() -> None:
    def truncate_and_write(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"data")
        process.fdatasync(descriptor)
        process.ftruncate(descriptor, 2)
        process.fdatasync(descriptor)
        ack("f")

    recorded = record(truncate_and_write, EXT4, Image.empty())
    _, write, _, truncate, _, ack = events_of(recorded)
    for first, count in ((write, 0), (truncate, 1)):
        barrier = MissingBarrier(Synced.FILE, first.site, ack.site)
        assert len(insert(recorded, barrier).syncs) == count


def write_head_and_record(process: Process, ack: History) -> None:
    """Write two pages of a file, only the second one synchronously."""
    process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"head")
    process.pwrite(process.open("/f", os.O_WRONLY | os.O_SYNC), b"record", 4096)
    process.fsync(process.open("/", os.O_RDONLY))
    ack("record")
    process.mkdir("/d")


def check_head(process: Process, known: Known) -> None:
    if known.acknowledged:
        with process.open_file("/f", "rb") as file:
            assert file.read(4) == b"head"


def test_a_gap_reaches_over_a_synchronous_write() -> None:
    """The barrier of a synchronous write of another page covers nothing that was written before."""
    found = diagnose(judged(record(write_head_and_record, EXT4, Image.empty()), check_head, [EXT4]))
    (gap,) = [cause.gap for cause in found.causes]
    assert isinstance(gap, Gap)
    assert (gap.first.kind, gap.first.number, gap.last.kind) == ("write", 2, "ack")


def test_a_candidate_is_due_before_an_event_of_the_program() -> None:
    """An inserted barrier is no such event: it is missing in the journal of the program."""

    def write_two_files(process: Process, ack: History) -> None:
        for name in ("/f", "/g"):
            process.write(process.open(name, os.O_CREAT | os.O_WRONLY), b"head")
        ack("files")

    found = judged(record(write_two_files, EXT4, Image.empty()), check_head, [EXT4])["ext4"]
    write, ack = list(events_of(found.workload))[-2:]
    barrier = MissingBarrier(Synced.FILE, write.site, ack.site)
    changed = insert(found.workload, barrier).workload
    again = found.checker.explore(changed, EXT4)
    last = {barrier.before.kind for barrier in candidates(changed, EXT4, again.failures[0])}
    assert last == {"create", "write", "ack"}


def test_a_barrier_behind_an_acknowledgement_does_not_prevent_the_loss_of_its_value() -> None:
    """The power may be cut between the two; a barrier before the acknowledgement prevents it."""

    def write_two_files(process: Process, ack: History) -> None:
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"head")
        ack("f")
        process.write(process.open("/g", os.O_CREAT | os.O_WRONLY), b"more")

    found = judged(record(write_two_files, EXT4, Image.empty()), check_head, [EXT4])["ext4"]
    _, write, ack, later, _ = events_of(found.workload)
    failures = [each for each in found.failures if each.crashes[0].operation == write.number]
    lost = LostPieces(found.workload, EXT4, failures)
    before, behind = (
        insert(found.workload, MissingBarrier(Synced.FILE, write.site, last.site))
        for last in (ack, later)
    )
    assert [each.workload.history.entries[0].after for each in (before, behind)] == [3, 2]
    assert before.workload.journal[:] == behind.workload.journal[:]
    assert lost.prevented(before) == failures != []
    assert lost.prevented(behind) == []


def test_a_barrier_that_allocates_a_block_covers_no_later_write_to_it() -> None:
    """The later write loses the same piece with the barrier, into a block that exists by then."""

    def append_twice(process: Process, ack: History) -> None:
        file = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.fsync(process.open("/", os.O_RDONLY))
        process.write(file, b"head")
        process.write(file, b"more")
        ack("more")

    def check_more(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/f", "rb") as file:
                assert file.read()[4:] == b"more"

    found = judged(record(append_twice, EXT4, Image.empty()), check_more, [EXT4])["ext4"]
    *_, first, second, _ = events_of(found.workload)
    insertion = insert(found.workload, MissingBarrier(Synced.FILE, first.site, second.site))
    again = found.checker.explore(insertion.workload, EXT4)
    moved = [without_inserted(each, again, found.workload, EXT4) for each in again.failures]
    assert {each.state for each in moved if each} == {each.state for each in again.failures}
    remaining = [each for each in moved if each is not None]
    assert LostPieces(found.workload, EXT4, remaining).prevented(insertion) == []


def test_a_journal_with_a_barrier_is_read_again_from_the_last_place_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write_many(process: Process, ack: History) -> None:
        for number in range(100):
            process.write(process.open(f"/{number}", os.O_CREAT | os.O_WRONLY), b"x")
        ack("many")

    workload = record(write_many, SCC, Image.empty())
    *_, write, ack = events_of(workload)
    loss = CrashPoint(write.number, Phase.AFTER, CrashKind.POWER_CUT, SurvivorSet((199,)))
    failure = Failure((loss,), 1, 0, LostAck("a file is lost"))
    lost = LostPieces(workload, SCC, [failure])
    begun: list[int] = []

    def advanced_from(unsynced: Unsynced, done: int, *others: Any) -> Any:
        begun.append(done)
        return advanced(unsynced, done, *others)

    monkeypatch.setattr("powercut.explorer.lost_pieces.advanced", advanced_from)
    insertion = insert(workload, MissingBarrier(Synced.FILE, write.site, ack.site))
    assert lost.prevented(insertion) == [failure]
    assert begun[0] > 190


def test_only_a_single_power_cut_is_one_of_the_workload_without_the_barrier() -> None:
    """A kill loses no piece, and the recovery before a second crash may be another one."""
    found = judged(record(write_head_and_record, EXT4, Image.empty()), check_head, [EXT4])["ext4"]
    cut = next(each for each in found.failures if each.needs_power_cut)
    (point,) = cut.crashes
    killed = replace(cut, crashes=(CrashPoint(point.operation, point.phase, CrashKind.KILL),))
    twice = replace(cut, crashes=(point, point))
    moved = [without_inserted(each, found, found.workload, EXT4) for each in (cut, killed, twice)]
    assert moved == [cut, None, None]


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        ("a", ""),
        ("aa", ""),
        ("abc", ", nor of /b.tmp and /c.tmp"),
        ("abcde", ", nor of /b.tmp, /c.tmp, /d.tmp and 1 more"),
    ],
)
def test_a_gap_names_all_files_of_its_barrier(names: str, ending: str) -> None:
    """One line of the program lacks the fsync of each file; a path that returns is named once."""

    def replace(process: Process, ack: History) -> None:
        for name in names:
            file = process.open(f"/{name}.tmp", os.O_CREAT | os.O_WRONLY)
            process.write(file, b"new")
            process.rename(f"/{name}.tmp", f"/{name}")
            process.sync()
        ack("new")

    def are_new(process: Process, _known: Known) -> None:
        for name in process.listdir("/"):
            with process.open_file(f"/{name}", "rb") as file:
                assert name.endswith(".tmp") or file.read() == b"new"

    recorded = record(replace, EXT4, Image.empty())
    (cause,) = diagnose(judged(recorded, are_new, [EXT4])).causes
    assert isinstance(cause.gap, Gap)
    assert cause.gap.others == tuple(f"/{name}.tmp" for name in sorted({*names} - {"a"}))
    write, rename = cause.gap.first, cause.gap.last
    assert cause_text(cause) == f"no fsync of /a.tmp between {write} and {rename}{ending}"


def _sets(process: Process, ack: History) -> None:
    """Write two files at one line, twice; acknowledge at another."""
    files = [process.open(name, os.O_CREAT | os.O_WRONLY) for name in ("/a", "/b")]
    for version in range(2):
        for file in files:
            process.write(file, b"x")
        ack(version)


def test_a_call_in_a_loop_is_counted_once_for_each_path() -> None:
    recorded = record(_sets, SCC, Image.empty())
    write, *_, ack = [*events_of(recorded)][2:]
    due = insert(recorded, MissingBarrier(Synced.FILE, write.wide_site, ack.site)).workload
    assert len(due.journal) - len(recorded.journal) == 4
    assert inserted_calls(due) == 2
    create = next(events_of(due))
    again = insert(due, MissingBarrier(Synced.DIRECTORY, create.site, ack.site)).workload
    assert inserted_calls(again) == 3


def test_calls_are_counted_at_each_place_if_lines_are_unknown() -> None:
    recorded = record(_sets, SCC, Image.empty())
    entries = [entry._replace(place=None) for entry in recorded.history.entries]
    recorded = replace(recorded, history=History(lambda: 0, entries=entries), places={})
    write, *_, ack = [*events_of(recorded)][2:]
    barrier = MissingBarrier(Synced.FILE, write.site, ack.site)
    assert inserted_calls(insert(recorded, barrier).workload) == 2
