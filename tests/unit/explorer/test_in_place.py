"""For a program that changes a file in place, the report says that no fsync suffices."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX, SCC, PersistenceModel

REMEDY = "the changes of /f are not atomic: write a new file, fsync it, and rename it to /f"


def lines_of(
    workload: Callable[[Process, History], None],
    model: PersistenceModel = SCC,
    check: Callable[[Process, Known], None] | None = None,
    nested: int = 0,
    image: Image | None = None,
) -> list[str]:
    recorded = record(workload, model, image or Image.empty())
    return list(repair_lines(diagnose(judged(recorded, check, [model], Limits(nested=nested)))))


def begin(process: Process, ack: History, name: str, data: bytes) -> int:
    """Create a file in an atomic way, and return a descriptor of it."""
    descriptor = process.open("/new", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, data)
    process.fsync(descriptor)
    process.rename("/new", name)
    process.sync()
    ack({name: data})
    return descriptor


def overwrites(process: Process, ack: History) -> None:
    descriptor = begin(process, ack, "/f", b"old, old")
    process.pwrite(descriptor, b"new,", 0)
    process.pwrite(descriptor, b" new", 4)
    ack({"/f": b"new, new"})


def truncates(process: Process, ack: History) -> None:
    descriptor = begin(process, ack, "/f", b"old")
    process.ftruncate(descriptor, 0)
    process.pwrite(descriptor, b"new", 0)
    process.fsync(descriptor)
    ack({"/f": b"new"})


def writes_pages(process: Process, ack: History) -> None:
    descriptor = begin(process, ack, "/f", b"a" * 8192)
    process.pwrite(descriptor, b"b" * 8192, 0)
    process.fsync(descriptor)
    ack({"/f": b"b" * 8192})


def writes_a_page(process: Process, ack: History) -> None:
    descriptor = begin(process, ack, "/f", b"a" * 1024)
    process.pwrite(descriptor, b"b" * 1024, 0)
    process.fsync(descriptor)
    ack({"/f": b"b" * 1024})


def changes_two_files(process: Process, ack: History) -> None:
    begin(process, ack, "/f", b"1")
    begin(process, ack, "/g", b"1")
    for name in ("/f", "/g"):
        descriptor = process.open("/new", os.O_CREAT | os.O_RDWR)
        process.write(descriptor, b"2")
        process.fsync(descriptor)
        process.rename("/new", name)
    ack({"/f": b"2", "/g": b"2"})


def are_equal(process: Process, known: Known) -> None:
    contents = set()
    for name in ("/f", "/g"):
        descriptor = process.open(name, os.O_RDONLY)
        contents.add(process.read(descriptor, 9))
        process.close(descriptor)
    assert len(contents) == 1 or len(known.acknowledged) < 2


def test_an_fsync_that_leaves_failing_states_does_not_suffice() -> None:
    first, second = lines_of(overwrites)
    assert first == (
        "repair    that fsync does not suffice: 2 of 16 states still fail with it, and no fsync "
        "prevents that"
    )
    assert second == f"          {REMEDY}"


@pytest.mark.parametrize(
    ("workload", "model"), [(truncates, SCC), (writes_pages, SCC), (writes_a_page, POSIX)]
)
def test_a_change_in_place_has_a_remedy_where_no_fsync_is_missing(
    workload: Callable[[Process, History], None], model: PersistenceModel
) -> None:
    assert lines_of(workload, model) == [f"repair    {REMEDY}"]


def renames_early(process: Process, ack: History) -> None:
    """Rename a new file over an old one while its content is in a buffer."""
    begin(process, ack, "/f", b"old")
    descriptor = process.open("/new", os.O_CREAT | os.O_RDWR)
    process.rename("/new", "/f")
    process.fsync(process.open("/", os.O_RDONLY))
    process.write(descriptor, b"new")
    process.fsync(descriptor)
    ack({"/f": b"new"})


def test_a_file_that_is_renamed_before_it_is_written_has_a_remedy() -> None:
    assert lines_of(renames_early) == [
        "repair    /f is renamed before it is written: write it and fsync it, and then rename it"
    ]


@pytest.mark.parametrize("makes", ["open", "rename", "symlink"])
def test_a_file_that_is_removed_before_the_new_one_is_there_is_renamed_over(makes: str) -> None:
    def replaces(process: Process, ack: History) -> None:
        process.close(begin(process, ack, "/f", b"old"))
        process.close(process.open("/t", os.O_CREAT | os.O_WRONLY))
        process.unlink("/f")
        match makes:
            case "open":
                process.close(process.open("/f", os.O_CREAT | os.O_WRONLY))
            case "rename":
                process.rename("/t", "/f")
            case _:
                process.symlink("t", "/f")
        process.sync()
        ack("replaced")

    def is_there(process: Process, known: Known) -> None:
        assert not known.acknowledged or "f" in process.listdir("/")

    (line,) = lines_of(replaces, check=is_there)
    assert line == (
        "repair    /f is removed before the new one is there: make that under another name, and "
        "rename it to /f"
    )


def test_changes_of_two_files_are_not_repaired_by_a_rename() -> None:
    (line,) = lines_of(changes_two_files, check=are_equal)
    assert line.endswith(" still fail with it, and no fsync prevents that")


def gaps_of(workload: Callable[[Process, History], None], check: Check | None = None) -> list[str]:
    """Return the places where a barrier is missing, under any model."""
    recorded = record(workload, POSIX, Image.empty())
    found = diagnose(judged(recorded, check, MODELS.values()))
    gaps = [each.gap for each in found.causes if isinstance(each.gap, Gap)]
    return [f"{gap.path}: {gap.first.kind} to {gap.last.kind}" for gap in gaps]


def contents_of(process: Process) -> dict[str, bytes]:
    contents = {}
    for name in process.listdir("/"):
        with process.open_file(f"/{name}", "rb") as file:
            contents[name] = file.read()
    return contents


def write_in_parts(process: Process, name: str, size: int) -> None:
    descriptor = process.open(name, os.O_CREAT | os.O_WRONLY)
    for _ in range(2):
        process.write(descriptor, b"x" * size)
    process.close(descriptor)


@pytest.mark.parametrize("size", [3000, 4096])
def test_no_fsync_is_named_between_the_writes_of_a_file_that_a_kill_leaves_in_part(
    size: int,
) -> None:
    def workload(process: Process, ack: History) -> None:
        process.write(process.open("/temporary", os.O_CREAT | os.O_WRONLY), b"x")
        write_in_parts(process, "/f", size)
        process.sync()
        ack({"/f": b"x" * 2 * size})

    assert gaps_of(workload) == []


@pytest.mark.parametrize(
    ("changed", "gaps"), [("/f", []), ("/g", ["/f: write to change of attributes"])]
)
def test_no_fsync_is_named_before_the_attributes_of_a_file_that_a_kill_leaves_in_part(
    changed: str, gaps: list[str]
) -> None:
    def workload(process: Process, ack: History) -> None:
        begin(process, ack, "/g", b"old")
        write_in_parts(process, "/f", 100)
        for mode in (0o600, 0o644):
            process.chmod(changed, mode)
        process.sync()
        ack({"/f": b"x" * 200, "/g": b"old"})

    assert gaps_of(workload) == gaps


def test_an_fsync_behind_the_writes_of_a_file_that_a_kill_leaves_in_part_is_named() -> None:
    def workload(process: Process, ack: History) -> None:
        begin(process, ack, "/f", b"old")
        write_in_parts(process, "/g", 1000)
        process.unlink("/f")
        process.sync()
        ack("moved")

    def has_one_whole(process: Process, known: Known) -> None:
        contents = contents_of(process)
        assert contents.get("g", b"x" * 2000) == b"x" * 2000
        assert contents or not known.acknowledged

    assert gaps_of(workload, has_one_whole) == ["/g: write to unlink"]


def test_an_fsync_of_another_file_than_the_one_that_a_kill_leaves_in_part_is_named() -> None:
    def workload(process: Process, ack: History) -> None:
        for name in ("/f", "/g"):
            write_in_parts(process, name, 100)
        process.sync()
        ack("saved")

    def are_whole(process: Process, _: Known) -> None:
        assert {*contents_of(process).values()} <= {b"x" * 200}

    assert gaps_of(workload, are_whole) == ["/f: write to write"]


def test_an_fsync_before_the_rename_of_a_file_that_a_kill_leaves_without_its_name_is_named() -> (
    None
):
    def workload(process: Process, ack: History) -> None:
        begin(process, ack, "/f", b"old")
        write_in_parts(process, "/new", 100)
        process.unlink("/f")
        process.rename("/new", "/f")
        process.sync()
        ack({"/f": b"x" * 200})

    assert gaps_of(workload) == ["/new: write to rename"]


def test_no_fsync_is_named_between_appends_to_one_block_that_may_be_torn() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for _ in range(2):
            process.write(descriptor, b"x" * 1000)
        process.sync()
        ack("saved")

    def has_whole_records(process: Process, _: Known) -> None:
        assert contents_of(process).get("f", b"") in {b"x" * size for size in (0, 1000, 2000)}

    assert gaps_of(workload, has_whole_records) == []


def test_a_lost_name_of_a_file_that_a_kill_leaves_in_part_is_no_part_of_its_content() -> None:
    """On btrfs the earlier rename may be lost without the truncation, so its fsync comes first."""

    def workload(process: Process, ack: History) -> None:
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"111")
        new = process.open("/new", os.O_CREAT | os.O_WRONLY)
        process.write(new, b"222")
        process.fsync(new)
        process.rename("/new", "/f")
        process.truncate("/f", 2)
        ack({"/f": b"22"})

    assert gaps_of(workload) == ["/f: truncate to ack", "/: rename to truncate"]


def test_a_file_that_is_moved_to_another_directory_may_keep_its_old_name() -> None:
    def workload(process: Process, ack: History) -> None:
        for directory in ("/a", "/b"):
            process.mkdir(directory)
        descriptor = process.open("/a/f", os.O_CREAT | os.O_WRONLY)
        process.sync()
        process.write(descriptor, b"job")
        process.fsync(descriptor)
        process.rename("/a/f", "/b/f")
        process.sync()
        ack("moved")

    def has_one_name(process: Process, known: Known) -> None:
        if "b" in process.listdir("/") and "f" in process.listdir("/b"):
            assert process.listdir("/a") == []

    (line,) = lines_of(workload, MODELS["btrfs"], has_one_name)
    assert line == (
        "repair    the rename to /b/f may leave the old name as well: remove it at the next start"
    )
