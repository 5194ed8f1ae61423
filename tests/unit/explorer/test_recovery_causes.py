"""A failure inside a recovery: the recovery is diagnosed as a workload, with its own barriers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History, HistoryEntry, Known
from oracles.violation import LostAck, TornRecord
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import Workload, record
from powercut.explorer.recovery import at_its_start
from powercut.explorer.verdicts import Exploration, Failure
from powercut.report.findings import cause_text, crash_lines, finding_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX
from sim.disk.crash.survivor_set import SurvivorSet

NESTED = Limits(nested=1)


def diagnosed(
    workload: Workload, check: object, models: tuple[str, ...] = ("ext4", "posix")
) -> Diagnosis:
    recorded = record(workload, POSIX, Image.empty())
    assert check is None or callable(check)
    return diagnose(judged(recorded, check, [MODELS[name] for name in models], NESTED))


def gaps(cause: Cause) -> Iterator[tuple[str, str, str]]:
    """Yield the barriers that the recovery of a cause misses: file, event before, event after."""
    assert cause.recovery is not None
    for each in cause.recovery.causes:
        assert isinstance(each.gap, Gap)
        yield each.gap.path, each.gap.first.kind, each.gap.last.kind


def write(process: Process, path: str, *, synced: bool) -> None:
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"x")
    if synced:
        process.fsync(descriptor)
    process.close(descriptor)


def sync_root(process: Process) -> None:
    descriptor = process.open("/", os.O_RDONLY)
    process.fsync(descriptor)
    process.close(descriptor)


def keep(process: Process, ack: History, path: str) -> None:
    """Write a file, make it durable, and acknowledge it."""
    write(process, path, synced=True)
    sync_root(process)
    ack(path)


def announce(process: Process, ack: History) -> None:
    """Write a note that announces a file, which the recovery writes."""
    write(process, "/note", synced=True)
    sync_root(process)
    ack("noted")


def finishing(*, synced: bool) -> Check:
    """Return a check that writes the file of the note, and then removes the note."""

    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if known.acknowledged and not names:
            raise LostAck("neither note nor file")
        if "note" not in names and "file" in names and not process.stat("/file").st_size:
            raise TornRecord("the file is empty")
        if "note" in names:
            if synced:
                sync_root(process)
            write(process, "/file", synced=synced)
            if synced:
                sync_root(process)
            process.unlink("/note")

    return check


def test_the_barriers_that_a_recovery_misses_are_one_cause() -> None:
    (cause,) = diagnosed(announce, finishing(synced=False)).causes
    assert [*gaps(cause)] == [("/file", "write", "unlink"), ("/", "create", "create")]
    assert cause.gap is NoGap.NOT_FOUND
    assert cause.recovery is not None
    assert all(found.safe for found in cause.recovery.repaired.values())
    assert {*cause.failures} == {"ext4", "posix"}


def test_a_failure_whose_recoveries_are_not_all_known_has_no_diagnosis_of_one() -> None:
    """The second of the three crashes is possible in no recovery of this disk."""
    found = diagnosed(announce, finishing(synced=False), ("ext4",)).explorations["ext4"]
    failure = next(each for each in found.failures if len(each.crashes) == 2)
    strange = CrashPoint(1, Phase.DURING, CrashKind.KILL, kept=4096)
    thrice = replace(failure, crashes=(failure.crashes[0], strange, failure.crashes[1]))
    assert len(found.checker.recoveries(found, thrice)) == 1
    (cause,) = diagnose({"ext4": replace(found, failures=[thrice])}).causes
    assert cause.recovery is None


def test_a_recovery_with_its_barriers_is_safe() -> None:
    assert not diagnosed(announce, finishing(synced=True)).unsafe_models


def test_the_report_shows_the_operation_and_the_loss_in_the_recovery() -> None:
    found = diagnosed(announce, finishing(synced=False), ("ext4",))
    lines = [*finding_lines(found, found.causes[0])]
    second = next(number for number, line in enumerate(lines) if "in recovery 1" in line)
    assert "power cut after unlink at " in lines[second]
    assert lines[second + 1].startswith("  lost      size of /file, 1 byte, ")
    assert lines[second + 2].startswith("  cause     in the recovery, no fsync of /file between ")
    assert lines[second + 3].startswith("  repair    with that fsync, none of ")


def test_a_change_of_the_recovery_that_is_not_atomic_is_its_cause() -> None:
    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if known.acknowledged and not names:
            raise LostAck("neither note nor file")
        if "note" in names:
            process.unlink("/note")
            write(process, "/file", synced=True)

    (cause,) = [
        each for each in diagnosed(announce, check, ("scc",)).causes if each.recovery is not None
    ]
    assert cause.gap is NoGap.NOT_ATOMIC
    assert cause_text(cause).startswith("in the recovery, no fsync helps: a kill loses nothing ")


def test_a_recovery_after_a_power_cut_begins_with_what_was_left() -> None:
    """The recovery writes only if the power cut has lost the second file."""

    def workload(process: Process, ack: History) -> None:
        keep(process, ack, "/a")
        write(process, "/b", synced=True)

    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if known.acknowledged and "a" not in names and "c" not in names:
            raise LostAck("neither a nor c")
        if known.acknowledged and "b" not in names and "a" in names:
            write(process, "/c", synced=True)
            process.unlink("/a")

    found = diagnosed(workload, check, ("posix",))
    (cause,) = found.causes
    assert [*gaps(cause)] == [("/", "create", "unlink")]
    kinds = {crashes.kind for crashes in cause.failure.crashes}
    assert CrashKind.POWER_CUT in kinds


def test_an_interposed_recovery_has_its_lines() -> None:
    def workload(ack: History) -> None:
        Path("note").touch()
        os.sync()
        ack("noted")

    def recover(known: Known) -> None:
        names = set(os.listdir())
        if "note" in names:
            os.rename("note", "done")
            os.mkdir("end")
        elif "end" in names:
            assert "done" in names
        del known

    found = diagnosed(workload, recover, ("posix",))
    text = " ".join(line for cause in found.causes for line in finding_lines(found, cause))
    assert "between rename at tests/unit/explorer/test_recovery_causes.py:" in text


def test_a_kill_during_a_write_leaves_its_pages_to_the_recovery() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.fsync(descriptor)
        sync_root(process)
        ack("empty")
        process.write(descriptor, b"x" * 8192)

    def check(process: Process, _known: Known) -> None:
        names = set(process.listdir("/"))
        if "half" in names and process.stat("/f").st_size < 4096:
            raise TornRecord("a half that is not there")
        if names == {"f"} and process.stat("/f").st_size == 4096:
            process.mkdir("/half")

    (cause,) = diagnosed(workload, check, ("posix",)).causes
    assert cause.failure.crashes[0].phase is Phase.DURING
    assert [*gaps(cause)] == [("/f", "write", "mkdir")]


@pytest.mark.parametrize(
    "crash",
    [
        CrashPoint(1, Phase.AFTER, CrashKind.POWER_CUT, SurvivorSet((40,))),
        CrashPoint(1, Phase.DURING, CrashKind.KILL, kept=4096),
    ],
)
def test_a_crash_that_a_changed_recovery_does_not_allow_is_shown_by_its_number(
    crash: CrashPoint,
) -> None:
    found = diagnosed(announce, finishing(synced=False), ("ext4",)).explorations["ext4"]
    failure = found.failures[0]
    assert any(line.endswith("1 of recovery 1") for line in _lines(found, failure, crash))
    twice = replace(failure, crashes=(failure.crashes[0], crash, *failure.crashes[1:]))
    assert len(found.checker.recoveries(found, twice)) == 1
    assert any(line.endswith("of recovery 2") for line in crash_lines(found, twice))


@pytest.mark.parametrize("operation", [1, 9])
def test_a_crash_behind_the_end_of_a_recovery_is_shown_by_its_number(operation: int) -> None:
    """The program of a kept failure may have changed since."""
    found = diagnosed(announce, finishing(synced=False), ("ext4",)).explorations["ext4"]
    failure = found.failures[0]
    moved = CrashPoint(operation, Phase.AFTER, CrashKind.KILL)
    lines = [*_lines(found, failure, moved)]
    assert any("of recovery 1" in line for line in lines) == (operation == 9)
    assert any("in recovery 1" in line for line in lines) == (operation == 1)


def _lines(found: Exploration, failure: Failure, second: CrashPoint) -> Iterator[str]:
    changed = Failure(
        (failure.crashes[0], second), failure.entries, failure.image, failure.violation
    )
    return crash_lines(found, changed)


def test_two_recoveries_are_recorded_one_after_the_other() -> None:
    """The second recovery finds what the first one has left."""

    def check(process: Process, _known: Known) -> None:
        steps = [name for name in process.listdir("/") if name.startswith("step")]
        if len(steps) == 2:
            raise LostAck("two steps")
        if process.listdir("/"):
            process.mkdir(f"/step{len(steps)}")
            process.mkdir("/after")

    recorded = record(announce, POSIX, Image.empty())
    found = judged(recorded, check, [MODELS["scc"]], Limits(nested=2))["scc"]
    killed = [CrashKind.KILL] * 3
    failure = next(
        each for each in found.failures if [crash.kind for crash in each.crashes] == killed
    )
    first, second = found.checker.recoveries(found, failure)
    assert second.before == first.before + failure.crashes[1].operation
    assert second.workload.journal[: second.before] == first.workload.journal[: second.before]
    assert second.allows(failure.crashes[2])
    assert all(max(each.workload.places) <= len(each.workload.journal) for each in (first, second))


def test_a_barrier_that_the_workload_misses_is_not_one_of_the_recovery() -> None:
    finish = finishing(synced=False)

    def workload(process: Process, ack: History) -> None:
        write(process, "/other", synced=False)
        sync_root(process)
        ack("other")
        announce(process, ack)

    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if known.acknowledged and process.stat("/other").st_size != 1:
            raise LostAck("the other file is empty")
        if "note" in names or "noted" in known.acknowledged:
            finish(process, Known((), ()))

    causes = diagnosed(workload, check, ("posix",)).causes
    missing = [each for each in causes if each.recovery is not None]
    assert next(gaps(missing[0])) == ("/file", "write", "unlink")
    assert not any(path == "/other" for path, _, _ in gaps(missing[0]))
    assert any(isinstance(each.gap, Gap) and each.gap.path == "/other" for each in causes)


def test_what_was_acknowledged_is_acknowledged_at_the_start_of_a_recovery() -> None:
    entries = [HistoryEntry(4 + number, True, number) for number in range(4)]
    history = History(lambda: 9, entries=entries)
    started = at_its_start(history, 2)
    assert started.known(started.entries_by(0, returned=True)) == Known((0, 1), (2,))
    assert started.known(2) == history.known(2)


def test_a_crash_of_the_workload_is_not_one_of_its_recovery() -> None:
    """A kill and a power cut that loses all of the recovery leave what a power cut leaves."""

    def workload(process: Process, ack: History) -> None:
        write(process, "/note", synced=False)
        sync_root(process)
        ack("noted")

    def check(process: Process, known: Known) -> None:
        if known.acknowledged and "file" not in process.listdir("/"):
            if not process.stat("/note").st_size:
                raise LostAck("the note is empty")
            write(process, "/file", synced=True)

    found = diagnosed(workload, check, ("ext4",))
    assert [len(each.crashes) for each in found.explorations["ext4"].failures] == [1]
    (cause,) = found.causes
    assert isinstance(cause.gap, Gap)
    assert (cause.gap.path, cause.gap.last.kind) == ("/note", "ack")


def test_a_barrier_that_two_crashes_of_a_recovery_need_is_one_cause() -> None:
    """After one of them it may also be due later, and is named where it is due first."""

    def announce_twice(process: Process, ack: History) -> None:
        keep(process, ack, "/file")
        announce(process, ack)

    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if "note" in names:
            write(process, "/new", synced=False)
            process.rename("/new", "/file")
            sync_root(process)
            process.unlink("/note")
        if known.acknowledged and not process.stat("/file").st_size:
            raise TornRecord("the file is empty")

    (cause,) = diagnosed(announce_twice, check).causes
    assert [*gaps(cause)] == [("/new", "write", "rename")]


def test_two_barriers_are_one_cause_in_either_order() -> None:
    def announce_twice(process: Process, ack: History) -> None:
        keep(process, ack, "/file")
        write(process, "/note.tmp", synced=True)
        process.rename("/note.tmp", "/note")
        sync_root(process)
        ack("noted")

    def check(process: Process, known: Known) -> None:
        if "note" in process.listdir("/"):
            process.truncate("/file", 0)
            write(process, "/file", synced=False)
            process.unlink("/note")
        if known.acknowledged and not process.stat("/file").st_size:
            raise TornRecord("the file is empty")

    (cause,) = diagnosed(announce_twice, check).causes
    assert {*gaps(cause)} == {("/file", "write", "unlink"), ("/", "rename", "truncate")}


def test_crashes_of_the_program_are_none_of_a_recovery() -> None:
    """The repair of the recovery is complete, although the program appends without a checksum."""

    def workload(process: Process, ack: History) -> None:
        log = process.open("/log", os.O_CREAT | os.O_WRONLY)
        sync_root(process)
        for number in range(2):
            process.write(log, b"x")
            process.fsync(log)
            ack(number)

    def check(process: Process, known: Known) -> None:
        names = set(process.listdir("/"))
        if "log" in names:
            with process.open_file("/log", "rb") as log:
                assert b"\0" not in log.read()
            write(process, "/new", synced=False)
            process.rename("/new", "/file")
            process.unlink("/log")
        elif known.acknowledged and not process.stat("/file").st_size:
            raise TornRecord("the file is empty")

    causes = diagnosed(workload, check, ("ext4",)).causes
    assert any(cause.gap is NoGap.NOT_ATOMIC for cause in causes)
    (diagnosis,) = [cause.recovery for cause in causes if cause.recovery is not None]
    assert not any(found.failures or found.failed for found in diagnosis.repaired.values())
