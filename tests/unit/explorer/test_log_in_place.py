"""The remedy for a file that is only appended to is that of a log, or names it beside the other."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.unit.explorer.test_in_place import REMEDY, contents_of, lines_of

CHECKSUMS = "give each record a checksum, and cut a torn record off the end before the next append"
OF_A_LOG = f"an append to /f is not atomic: {CHECKSUMS}"
PERHAPS_OF_A_LOG = f"{REMEDY}; if it is a log, {CHECKSUMS}"


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
    append(process, ack, b"abc", b"abc")


def commits_in_groups(process: Process, ack: History) -> None:
    """Append a record while an earlier one is synced, and acknowledge both."""
    append(process, ack.attempt, b"a", b"a")
    append(process, ack, b"bc", b"abc")


@pytest.mark.parametrize(
    ("workload", "remedy"),
    [
        (appends, OF_A_LOG),
        (appends_and_truncates, REMEDY),
        (builds, REMEDY),
        (commits_in_groups, PERHAPS_OF_A_LOG),
    ],
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
