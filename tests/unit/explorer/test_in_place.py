"""For a program that changes a file in place, the report says that no fsync suffices."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from powercut.explorer.cause import NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.limits import Limits
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from powercut.explorer.repair import preventable
from powercut.report.findings import repair_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import BTRFS, POSIX, SCC, PersistenceModel
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


def test_changes_of_two_files_are_not_repaired_by_a_rename() -> None:
    (line,) = lines_of(changes_two_files, check=are_equal)
    assert line.endswith(" still fail with it, and no fsync prevents that")


def test_failures_that_lose_a_file_that_a_kill_breaks_have_the_same_cause() -> None:
    def workload(process: Process, ack: History) -> None:
        f, g = [begin(process, ack, name, b"old") for name in ("/f", "/g")]
        process.pwrite(g, b"new", 0)
        process.ftruncate(f, 1)
        process.ftruncate(f, 2)
        ack({"/f": b"o\0", "/g": b"new"})

    found = diagnose(judged(record(workload, BTRFS, Image.empty()), None, [BTRFS]))
    left = {each.state for each in preventable(found.repaired["btrfs"])}
    assert left
    assert left <= {each.state for each in found.causes[0].failures["btrfs"]}
    gaps = [cause.gap for cause in found.causes]
    assert gaps[0] is NoGap.NOT_ATOMIC
    assert {gap.path for gap in gaps[1:] if isinstance(gap, Gap)} == {"/f", "/g"}
    assert len(gaps) == 3
