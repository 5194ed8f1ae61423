"""The recorder on real file systems of this machine; needs root, FUSE and loop devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from powercut.calibrate import file_system
from powercut.calibrate.file_system import FILE_SYSTEMS, Kind
from powercut.calibrate.image_device import ImageServerDied, attached_devices, image_devices
from powercut.calibrate.program import Call
from powercut.calibrate.real_file_system import CannotRecord
from powercut.calibrate.recorder import Recorder, SetupFailed, recorder
from powercut.calibrate.reduction import reduce_calls
from powercut.calibrate.requirements import missing_requirements
from powercut.calibrate.row import Program, Row
from powercut.calibrate.tally import Tally
from sim.disk.crash.persistence import EXT4_ORDERED, Coverage

MISSING = {
    name: missing_requirements([FILE_SYSTEMS[name]]) for name in ("ext4", "ext4j", "xfs", "btrfs")
}


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(MISSING[name]), reason="; ".join(MISSING[name]))


EACH = [pytest.param(name, marks=needs(name), id=name) for name in MISSING]

APPEND = Program((["write", "f", 0, 4096, "a"],), (["append", "f", 4096, "B"], ["fsync", "f"]))
OLD = {"f": "a4096"}
NEW = {"f": "a4096,B4096"}


def outcomes(row: Row, returned: int) -> list[dict[str, str]]:
    return [seen["out"] for seen in row["seen"] if seen["k"] == returned]


@pytest.fixture(scope="module")
def ext4() -> Iterator[Recorder]:
    with recorder(FILE_SYSTEMS["ext4"]) as opened:
        yield opened


@pytest.mark.parametrize("name", EACH)
def test_fsync_that_has_returned_is_durable_and_before_it_both_states_are_possible(
    name: str,
) -> None:
    with recorder(FILE_SYSTEMS[name]) as opened:
        row = opened.record(APPEND, 1)
    assert row["results"] == [None, None]
    assert outcomes(row, 2) == [NEW]
    assert OLD in outcomes(row, 1)
    assert NEW in outcomes(row, 1)
    assert row["mount_failed"] == []


@needs("ext4")
def test_nothing_is_mounted_in_the_tree_of_directories_and_nothing_stays_attached() -> None:
    before = Path("/proc/self/mountinfo").read_text()
    with recorder(FILE_SYSTEMS["ext4"]) as opened:
        opened.record(APPEND, 1)
        assert Path("/proc/self/mountinfo").read_text() == before
    assert not attached_devices(os.getpid())


@needs("ext4")
def test_attached_image_is_listed_until_it_is_detached() -> None:
    with image_devices(1 << 20) as devices:
        devices.create("one")
        with devices.attached("one") as device:
            assert attached_devices(os.getpid()) == [device.path]
        assert attached_devices(os.getpid()) == []


@needs("ext4")
def test_outcome_has_directories_links_contents_and_permission_bits(ext4: Recorder) -> None:
    calls: list[Call] = [
        ["mkdir", "d"],
        ["write", "d/f", 1, 2, "B"],
        ["link", "d/f", "g"],
        ["symlink", "f", "l"],
        ["creat", "h"],
        ["rename", "no", "f"],
        ["chmod", "d", 0o1700],
        ["chmod", "h", 0o1755],
        ["utime", "h", 1],
        ["tmpfile", "h1", "d"],
        ["hlink", "h1", "t"],
        ["sync"],
    ]
    row = ext4.record(Program((), tuple(calls)), 1)
    assert row["results"] == [*[None] * 5, "ENOENT", *[None] * 6]
    assert outcomes(row, 12) == [
        {
            "d": "dir 1700",
            "d/f": "01,B2",
            "g": "=d/f",
            "h": "empty 1755",
            "l": "->f",
            "t": "empty",
        }
    ]


@needs("ext4")
def test_background_commit_makes_a_rename_durable_without_a_call(ext4: Recorder) -> None:
    setup: tuple[Call, ...] = (["write", "f", 0, 10, "a"],)
    row = ext4.record(Program(setup, (["rename", "f", "g"], ["bg", "commit"])), 1)
    assert {"f": "a10"} in outcomes(row, 1)
    assert {"g": "a10"} in outcomes(row, 1)
    assert outcomes(row, 2) == [{"g": "a10"}]


@needs("ext4")
def test_program_changes_time_stamps_that_its_set_up_left(ext4: Recorder) -> None:
    setup: tuple[Call, ...] = (["write", "f", 0, 4096, "a"],)
    row = ext4.record(Program(setup, (["write", "f", 0, 4096, "B"], ["fsync", "f"])), 1)
    # Data, a flush, the journal with the time stamp.
    assert len(row["log"]) > 2


@needs("ext4")
def test_programs_do_not_see_one_another(ext4: Recorder) -> None:
    ext4.record(Program((["creat", "old"],), (["sync"],)), 1)
    row = ext4.record(Program((), (["creat", "f"], ["sync"])), 1)
    assert outcomes(row, 2) == [{"f": "empty"}]


@needs("ext4")
def test_set_up_that_fails_is_refused_and_leaves_the_recorder_usable(ext4: Recorder) -> None:
    with pytest.raises(SetupFailed, match=r"\['unlink', 'f'\] with ENOENT"):
        ext4.record(Program((["unlink", "f"],), ()), 1)
    assert outcomes(ext4.record(APPEND, 1), 2) == [NEW]


@needs("ext4")
def test_recording_fails_when_the_image_server_was_killed() -> None:
    others = active_children()
    with recorder(FILE_SYSTEMS["ext4"]) as opened:
        (server,) = (child for child in active_children() if child not in others)
        server.kill()
        server.join()
        with pytest.raises(ImageServerDied):
            opened.record(APPEND, 1)
    assert active_children() == others


@needs("ext4")
def test_mkfs_that_fails_is_reported_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "_SIZES", {Kind.EXT4: 1 << 16})
    with (
        pytest.raises(
            CannotRecord, match=r"cannot record ext4: mkfs\.ext4 failed: .*Not enough space"
        ),
        recorder(FILE_SYSTEMS["ext4"]),
    ):
        pass
    assert not attached_devices(os.getpid())


@needs("ext4")
def test_wrong_model_is_contradicted_by_a_program_that_is_reduced(ext4: Recorder) -> None:
    """On ext4, an fsync commits nothing if its file has nothing to commit."""
    wrong = replace(EXT4_ORDERED, name="wrong", coverage=Coverage.EVERYTHING)
    tally = Tally(lambda _: wrong)
    setup: tuple[Call, ...] = (["write", "f", 0, 10, "a"], ["creat", "o"])
    calls: tuple[Call, ...] = (["fsync", "f"], ["rename", "f", "g"], ["fsync", "o"], ["sync"])
    found = tally.add(ext4.record(Program(setup, calls), 1))
    assert found is not None
    smallest = reduce_calls(found, partial(ext4.record, seed=1), tally.contradiction, lambda: True)
    assert smallest.cause.startswith("coverage=order: ")
    # The set-up's other file can be the one that is synced.
    assert len(smallest.row["ops"]) == 2
    assert smallest.calls <= 4
    assert Tally().contradiction(smallest.row) is None


def record_until_killed(out: Connection) -> None:
    """Record the same program again and again; report each row."""
    with recorder(FILE_SYSTEMS["ext4"]) as opened:
        while True:
            out.send(opened.record(APPEND, 1)["images"])


@needs("ext4")
def test_kill_of_the_recorder_leaves_nothing_attached() -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=record_until_killed, args=(theirs,))
    child.start()
    theirs.close()
    assert child.pid is not None
    for _ in range(3):
        assert ours.recv() > 2
    child.kill()
    child.join()
    while attached_devices(child.pid):
        pass
