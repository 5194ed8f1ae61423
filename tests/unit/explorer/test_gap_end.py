"""The end of a gap: the latest event before which the barrier suffices there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.history import History, Known
from powercut.explorer import failures_by_barrier
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.event import Event, events_of
from powercut.explorer.explore import judged
from powercut.explorer.failures_by_barrier import ByModel
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import RecordedWorkload, record
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX


def put(process: Process, path: str, data: bytes) -> int:
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, data)
    return descriptor


def twice(between: Callable[[Process, int, History], None]) -> Callable[[Process, History], None]:
    """Log a value, do ``between`` and store the value, two times; the log is not synced."""

    def workload(process: Process, ack: History) -> None:
        root = process.open("/", os.O_RDONLY)
        for value in (b"1111", b"2222"):
            process.close(put(process, "/log", value))
            between(process, root, ack)
            stored = put(process, "/value", value)
            process.fsync(stored)
            process.close(stored)
            process.unlink("/log")
            process.fsync(root)

    return workload


def check(process: Process, _: Known) -> None:
    """While the log is incomplete, the value is absent, or that of the first time."""
    files = process.disk.files()
    if len(files.get("/log", b"....")) < 4 or files.get("/log") == bytes(4):
        assert files.get("/value", b"1111") == b"1111"


def sync_directory(process: Process, root: int, _: History) -> None:
    process.fsync(root)


def sync_and_acknowledge(process: Process, root: int, ack: History) -> None:
    process.fsync(root)
    ack("logged")


def gap_of_log(
    between: Callable[[Process, int, History], None],
    *,
    has_places: bool = False,
    is_exhaustive: bool = True,
) -> tuple[str, int, int]:
    recorded = record(twice(between), POSIX, Image.empty())
    if not has_places:
        recorded = replace(recorded, places={})
    explorations = judged(recorded, check, [MODELS["ext4"], MODELS["btrfs"]])
    for each in explorations.values():
        each.exhaustive = is_exhaustive
    found = diagnose(explorations)
    (gap,) = [each.gap for each in found.causes if isinstance(each.gap, Gap)]
    assert (gap.path, gap.first.kind, gap.more) == ("/log", "write", 1)
    assert not any(each.failed for each in found.repaired.values())
    return gap.last.kind, gap.first.number, gap.last.number


def test_a_gap_ends_behind_events_after_which_nothing_fails() -> None:
    """The directory is synced each time; the value is created the first time only."""
    assert gap_of_log(sync_directory) == ("create", 2, 4)


def test_a_gap_between_lines_ends_at_a_line_of_every_round() -> None:
    assert gap_of_log(sync_directory, has_places=True) == ("fsync", 2, 3)


def test_a_gap_ends_at_the_next_acknowledgement() -> None:
    assert gap_of_log(sync_and_acknowledge)[0] == "ack"


def test_a_gap_of_a_sample_keeps_its_end() -> None:
    """Its failures between the two ends may be unknown."""
    assert gap_of_log(sync_directory, is_exhaustive=False) == ("fsync", 2, 3)


def test_a_later_end_is_named_only_if_it_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(workload: RecordedWorkload, gap: Gap, failures: ByModel) -> Event:
        del failures
        return next(each for each in events_of(workload) if each.number == gap.last.number + 2)

    monkeypatch.setattr(failures_by_barrier, "_latest_end", too_late)
    assert gap_of_log(sync_directory) == ("fsync", 2, 3)
