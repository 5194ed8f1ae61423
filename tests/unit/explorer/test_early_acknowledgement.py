"""A value that is acknowledged before it is written is a cause of its own."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from powercut.explorer.cause import NoGap
from powercut.explorer.early_acknowledgement import early_moments
from powercut.explorer.explore import explore
from powercut.explorer.harm import Harm
from powercut.explorer.repair import Moment, moment_of
from powercut.report.findings import cause_text, harms_text
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from tests.unit.explorer.test_diagnosis import diagnosed, in_place

TEXT = (
    "acknowledged before it was written, for example because a buffer still holds it: flush the "
    "file (in Python, file.flush()) before the fsync and the acknowledgement"
)


def log(process: Process, ack: Callable[[object], None], written: int) -> None:
    """Append three records; write them only when there are as many in the buffer."""
    descriptor = process.open("/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    process.sync()
    buffer = b""
    for number in range(3):
        buffer += b"%d" % number
        if len(buffer) == written:
            process.write(descriptor, buffer)
            buffer = b""
        process.fsync(descriptor)
        ack(str(number))
    if buffer:
        process.write(descriptor, buffer)


def is_logged(process: Process, known: Known) -> None:
    content = b""
    if "log" in process.listdir("/"):
        with process.open_file("/log", "rb") as file:
            content = file.read()
    expected = "".join(map(str, known.acknowledged))
    assert content.decode()[: len(expected)] == expected, len(content)


def test_a_buffer_that_is_not_flushed_is_the_cause() -> None:
    found = diagnosed(lambda process, ack: log(process, ack, 4), is_logged)
    (cause,) = found.causes
    assert cause.gap is NoGap.ACKNOWLEDGED_EARLY
    assert cause_text(cause) == TEXT
    (point,) = cause.failure.crashes
    assert (point.operation, cause.failure.entries) == (3, 1)
    assert list(repair_lines(found)) == []


def test_each_value_that_waits_in_the_buffer_belongs_to_it() -> None:
    """The second record writes the first one as well, and the third one waits again."""
    (cause,) = diagnosed(lambda process, ack: log(process, ack, 2), is_logged, ("scc",)).causes
    assert cause.gap is NoGap.ACKNOWLEDGED_EARLY
    kills = [each for each in cause.failures["scc"] if not each.needs_power_cut]
    assert sorted(each.entries for each in kills) == [1, 3]


def test_a_program_that_flushes_is_safe() -> None:
    assert not diagnosed(lambda process, ack: log(process, ack, 1), is_logged).causes


def memory(process: Process, ack: History) -> None:
    """Acknowledge a file that is still empty."""
    descriptor = process.open("/a", os.O_CREAT | os.O_WRONLY)
    process.fsync(descriptor)
    ack({"/a": b"1"})
    process.write(descriptor, b"1")


def test_a_file_that_is_not_atomic_either_is_two_causes() -> None:
    early, other = diagnosed(memory, models=("scc",)).causes
    assert early.gap is NoGap.ACKNOWLEDGED_EARLY
    assert early.failure.entries == 1
    assert other.gap is NoGap.NOT_ATOMIC
    assert other.failure.entries == 0


def test_a_change_that_is_not_atomic_is_no_early_acknowledgement() -> None:
    """Another value is acknowledged while the file is empty."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"old")
        process.sync()
        ack("f")
        process.ftruncate(descriptor, 0)
        ack("g")
        process.pwrite(descriptor, b"new", 0)

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            assert process.stat("/f").st_size, "/f is empty"

    kill, *_ = diagnosed(workload, check).causes
    assert kill.gap is NoGap.NOT_ATOMIC


def test_a_kill_that_a_sample_has_left_out_does_not_end_it() -> None:
    def workload(process: Process, ack: Callable[[object], None]) -> None:
        process.mkdir("/0")
        ack("0")
        for number in (1, 2, 3):
            process.mkdir(f"/{number}")
        with process.open_file("/log", "wb") as file:
            file.write(b"0")
        process.unlink("/log")

    def in_sample(left_out: int) -> set[Moment]:
        found = explore(workload, is_logged, "scc")
        found.failures = [each for each in found.failures if moment_of(each)[0] != left_out]
        return early_moments(found)

    # The file is created by operation 5, written by 6 and removed by 7: that is another cause.
    early = {(number, 1) for number in range(1, 7)}
    assert [in_sample(left_out) for left_out in (0, 2, 3)] == [early, early, early]


def test_no_time_no_early_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explore(lambda process, ack: log(process, ack, 4), is_logged, "scc")
    assert early_moments(found)
    monkeypatch.setattr(type(found.checker), "is_over", lambda *_: True)
    assert not early_moments(found)


def test_the_harm_at_a_kill_is_that_of_kills() -> None:
    """A power cut behind the late write leaves zeros: that is corruption, which no kill does."""

    def is_logged_without_zeros(process: Process, known: Known) -> None:
        is_logged(process, known)
        with process.open_file("/log", "ab+") as file:
            file.seek(0)
            assert b"\0" not in file.read()

    models = ("scc", "ext4-journal", "posix")
    found = diagnosed(lambda process, ack: log(process, ack, 4), is_logged_without_zeros, models)
    (cause,) = found.causes
    assert cause.harms == {Harm.LOST_ACKNOWLEDGEMENT: list(models), Harm.CORRUPTION: ["posix"]}
    assert harms_text(cause) == "lost acknowledgement (corruption at a power cut on posix), "
    file, _ = diagnosed(in_place, models=("ext4",)).causes
    assert harms_text(file) == "corruption, "
