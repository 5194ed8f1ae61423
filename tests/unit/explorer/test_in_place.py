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
from sim.disk.disk import Disk

REMEDY = "the changes of /f are not atomic: write a new file, fsync it, and rename it to /f"

OF_A_LOG = (
    "an append to /f is not atomic: give each record a checksum, and cut a torn record off the end "
    "before the next append"
)


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


def append(process: Process, ack: Callable[[object], None], records: bytes, content: bytes) -> None:
    """Append records of one byte, each in a call of its own, and acknowledge the content."""
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for byte in records:
        process.write(descriptor, bytes([byte]))
    process.fsync(descriptor)
    process.close(descriptor)
    process.sync()
    ack({"/f": content})


def appends(process: Process, ack: History) -> None:
    append(process, ack, b"a", b"a")
    append(process, ack, b"bc", b"abc")


def appends_and_truncates(process: Process, ack: History) -> None:
    appends(process, ack)
    process.truncate("/f", 0)
    append(process, ack, b"d", b"d")


def builds(process: Process, ack: History) -> None:
    append(process, ack.attempt, b"a", b"a")
    append(process, ack, b"bc", b"abc")


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


@pytest.mark.parametrize(
    ("workload", "remedy"),
    [(appends, OF_A_LOG), (appends_and_truncates, REMEDY), (builds, REMEDY)],
)
def test_a_log_is_not_renamed(workload: Callable[[Process, History], None], remedy: str) -> None:
    assert lines_of(workload) == [f"repair    {remedy}"]


def appends_behind_a_cut(process: Process, ack: History) -> None:
    """Cut off a torn end, of which there is none, as a recovery does."""
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.ftruncate(descriptor, 0)
    process.close(descriptor)
    appends(process, ack)


def has_whole_pairs(process: Process, _: Known) -> None:
    assert len(contents_of(process).get("f", b"")) % 2 == 0


def test_a_log_that_a_recovery_cuts_shorter_is_not_renamed() -> None:
    assert lines_of(appends_behind_a_cut) == [f"repair    {OF_A_LOG}"]


def test_a_log_that_is_emptied_when_it_is_no_longer_needed_is_not_renamed() -> None:
    def appends_pairs(process: Process, ack: History) -> None:
        for pairs in (b"aa", b"bb"):
            append(process, ack, pairs, pairs)
        process.truncate("/f", 0)
        append(process, ack, b"cc", b"cc")

    assert lines_of(appends_pairs, check=has_whole_pairs) == [f"repair    {OF_A_LOG}"]


def test_a_log_that_existed_at_the_start_is_not_renamed() -> None:
    disk = Disk()
    append(Process(disk), History(lambda: 0), b"a", b"a")

    def appends_more(process: Process, ack: History) -> None:
        append(process, ack, b"bc", b"abc")

    assert lines_of(appends_more, image=disk.unmounted()) == [f"repair    {OF_A_LOG}"]


def test_a_barrier_between_the_creation_of_a_log_and_its_first_line_hides_no_remedy() -> None:
    def appends_to_durable_name(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_DSYNC)
        process.fsync(process.open("/", os.O_RDONLY))
        for content in (b"a", b"ab"):
            process.write(descriptor, content[-1:])
            ack({"/f": content})

    assert lines_of(appends_to_durable_name) == [f"repair    {OF_A_LOG}"]


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
