"""A missing barrier lists the models that need it; those that list a model suffice under it."""

from __future__ import annotations

import os

import pytest

from oracles.history import History, Known
from powercut.explorer import verdicts
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.failures_by_barrier import FailuresByBarrier
from powercut.explorer.harm import Harms
from powercut.explorer.judge import Check
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.explorer.repair import preventable, with_barriers
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX


def write(process: Process, path: str) -> None:
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"all")
    process.close(descriptor)


def barriers_listing(recorded: RecordedWorkload, check: Check) -> dict[str, list[str]]:
    """Return the paths to be synced by the model that lists them; they suffice, and none less."""
    found = judged(recorded, check, MODELS.values())
    missing = FailuresByBarrier(found, Harms(found))
    by_barrier = missing.failures()
    listing: dict[str, list[str]] = {}
    for name, exploration in found.items():
        barriers = [each for each, failures in by_barrier.items() if failures[name]]
        for left_out in [None, *barriers]:
            inserted = [each for each in barriers if each != left_out]
            workload = with_barriers(recorded, inserted)
            again = exploration.checker.explore(workload, exploration.model)
            assert bool(preventable(again)) == (left_out is not None)
        listing[name] = [missing.gap(each, by_barrier[each]).path for each in barriers]
    return listing


@pytest.mark.parametrize("kept", [4096, 3])
def test_one_of_two_barriers_lists_a_model_under_which_either_suffices(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another barrier, which does not prevent the loss of the rename, lists the model as well."""
    monkeypatch.setattr(verdicts, "KEPT_FAILURES", kept)

    def move(process: Process, ack: History) -> None:
        process.mkdir("/d")
        process.mkdir("/e")
        process.close(process.open("/d/f", os.O_CREAT | os.O_WRONLY))
        process.sync()
        write(process, "/g")
        ack("written")
        process.rename("/d/f", "/e/f")
        ack("moved")

    def check(process: Process, known: Known) -> None:
        if "written" in known.acknowledged:
            with process.open_file("/g", "rb") as file:
                assert file.read() == b"all"
        if "moved" in known.acknowledged:
            assert (process.listdir("/d"), process.listdir("/e")) == ([], ["f"])

    listing = barriers_listing(record(move, POSIX, Image.empty()), check)
    assert listing["ext4"] == ["/g", "/e"]
    assert sorted(listing["posix"]) == ["/", "/d", "/e", "/g"]


def files_are_whole(process: Process, _: Known) -> None:
    for name in process.listdir("/"):
        with process.open_file(f"/{name}", "rb") as file:
            assert file.read() == b"all", name


def test_the_same_crash_is_listed_where_no_barrier_makes_its_moment_safe() -> None:
    """Behind the write of /x, xfs may lose that of /y; ext4 may also lose that of /x alone."""

    def write_two(process: Process, ack: History) -> None:
        write(process, "/y")
        write(process, "/x")
        process.sync()
        ack("saved")

    recorded = record(write_two, POSIX, Image.empty())
    found = diagnose(judged(recorded, files_are_whole, MODELS.values()))
    (cause,) = [each for each in found.causes if isinstance(each.gap, Gap)]
    shown = cause.failures["xfs"][0].state
    for name, exploration in found.explorations.items():
        fails = shown in {each.state for each in exploration.failures}
        assert fails == (name in cause.failures)
    assert [*cause.failures] == ["ext4", "ext4-ordered", "ext4-writeback", "xfs", "btrfs", "posix"]


def test_a_state_that_a_model_leaves_with_all_barriers_does_not_list_it() -> None:
    """An fsync of /y prevents that /z is gone and /y empty; on posix the name of /z may be lost."""

    def replace_one(process: Process, _: History) -> None:
        write(process, "/z")
        write(process, "/y")
        process.unlink("/z")

    recorded = record(replace_one, POSIX, Image.empty())
    found = diagnose(judged(recorded, files_are_whole, MODELS.values()))
    (cause,) = [
        each for each in found.causes if isinstance(each.gap, Gap) and each.gap.path == "/y"
    ]
    prevented = {each.state for each in cause.failures["ext4"]}
    assert prevented & {each.state for each in found.explorations["posix"].failures}
    assert prevented & {each.state for each in found.repaired["posix"].failures}
    assert [*cause.failures] == ["ext4", "ext4-ordered", "ext4-writeback", "xfs", "btrfs"]
