"""The findings of an exploration, as they are printed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from syrupy.assertion import SnapshotAssertion

from oracles.history import History, Known
from oracles.violation import LostAck, TornRecord
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.report.findings import report_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX


def page(
    workload: Callable[[Process, History], None],
    check: Check | None = None,
    nested: int = 0,
    places: bool = True,
) -> str:
    """Return the findings; the lines of this file count from the start of the workload."""
    recorded = record(workload, POSIX, Image.empty())
    if not places:
        history = History(
            lambda: 0,
            entries=[entry._replace(place=None) for entry in recorded.history.entries],
        )
        recorded = RecordedWorkload(recorded.journal, history)
    verdicts = judged(recorded, check, MODELS.values(), Limits(nested=nested))
    first = workload.__code__.co_firstlineno
    return re.sub(
        r"tests/snapshots/test_findings\.py:(\d+)",
        lambda found: f"app.py:{int(found[1]) - first}",
        "\n".join(report_lines(diagnose(verdicts))),
    )


def replace_without_barriers(process: Process, ack: History) -> None:
    for data in (b"volume=3", b"volume=11"):
        descriptor = process.open("/settings.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        process.write(descriptor, data)
        process.close(descriptor)
        process.replace("/settings.tmp", "/settings")
        ack({"/settings": data})


def rewrite_in_place(process: Process, ack: History) -> None:
    descriptor = process.open("/state", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, b"old")
    process.sync()
    ack({"/state": b"old"})
    process.ftruncate(descriptor, 0)
    process.pwrite(descriptor, b"n" * 600, 0)
    ack({"/state": b"n" * 600})


def log_of_new_directories(process: Process, ack: History) -> None:
    process.mkdir("/var")
    process.mkdir("/var/log")
    descriptor = process.open("/var/log/app", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for number in range(3):
        ack.attempt(number)
        process.write(descriptor, b"%d\n" % number)
        process.fsync(descriptor)
        ack(number)


def records(process: Process, known: Known) -> None:
    try:
        with process.open_file("/var/log/app", "rb") as file:
            lines = file.read().split()
    except FileNotFoundError:
        lines = []
    if len(lines) < len(known.acknowledged):
        raise LostAck("a record is lost", acknowledged=len(known.acknowledged), actual=len(lines))


def test_two_missing_barriers(snapshot: SnapshotAssertion) -> None:
    assert page(replace_without_barriers) == snapshot


def test_a_kill_and_a_missing_barrier(snapshot: SnapshotAssertion) -> None:
    assert page(rewrite_in_place) == snapshot


def test_new_directories_and_a_check_of_its_own(snapshot: SnapshotAssertion) -> None:
    assert page(log_of_new_directories, records) == snapshot


def test_a_barrier_that_some_models_do_not_need(snapshot: SnapshotAssertion) -> None:
    def publish(process: Process, ack: History) -> None:
        descriptor = process.open("/part.tmp", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"result")
        process.rename("/part.tmp", "/part")
        ack("part")

    def is_whole(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/part", "rb") as file:
                found = file.read()
            if found != b"result":
                raise TornRecord("the part is torn", found=found)

    assert page(publish, is_whole) == snapshot


def test_a_message_of_several_lines_is_indented(snapshot: SnapshotAssertion) -> None:
    def creates(process: Process, ack: History) -> None:
        process.close(process.open("/f", os.O_CREAT))
        ack(1)

    def check(process: Process, known: Known) -> None:
        if known.acknowledged and "f" not in process.listdir("/"):
            raise ValueError("cannot be read:\n- as text\n- as a number")

    assert page(creates, check) == snapshot


def test_operations_without_lines_are_named_by_their_paths(snapshot: SnapshotAssertion) -> None:
    assert page(replace_without_barriers, places=False) == snapshot


def replace_by_a_new_name(process: Process, ack: History) -> None:
    process.close(process.open("/old", os.O_CREAT | os.O_WRONLY))
    process.close(process.open("/new.tmp", os.O_CREAT | os.O_WRONLY))
    directory = process.open("/", os.O_RDONLY)
    process.fsync(directory)
    ack("old")
    process.rename("/new.tmp", "/new")
    process.fsync(directory)


def test_a_recovery_that_misses_an_fsync(snapshot: SnapshotAssertion) -> None:
    """It removes the old file before the rename that a kill has left is durable."""

    def check(process: Process, known: Known) -> None:
        names = process.listdir("/")
        if known.acknowledged and not {"old", "new"} & {*names}:
            raise LostAck("neither old nor new")
        if {"old", "new"} <= {*names}:
            process.unlink("/old")

    assert page(replace_by_a_new_name, check, nested=1) == snapshot


def leave_a_note(process: Process, ack: History) -> None:
    process.close(process.open("/note", os.O_CREAT | os.O_WRONLY))
    directory = process.open("/", os.O_RDONLY)
    process.fsync(directory)
    ack("noted")


def finish(process: Process, _: Known) -> None:
    names = process.listdir("/")
    if "note" in names:
        process.unlink("/note")
        process.mkdir("/done")
    elif names != ["done"]:
        raise LostAck("neither note nor result")


def test_a_crash_inside_the_recovery(snapshot: SnapshotAssertion) -> None:
    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            finish(process, known)

    assert page(leave_a_note, check, nested=1) == snapshot
