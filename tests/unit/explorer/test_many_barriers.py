"""Where many barriers are missing, each that is inserted has a finding, and the rest is named."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer import failures_by_barrier, verdicts
from powercut.explorer import repair as module
from powercut.explorer.cause import Diagnosis, NoGap
from powercut.explorer.crash_state import image_at
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.event import events_of
from powercut.explorer.explore import judged
from powercut.explorer.failures_by_barrier import FailuresByBarrier
from powercut.explorer.missing_barrier import Gap, MissingBarrier, Synced, is_inserted
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.report.findings import cause_text
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import EXT4_ORDERED, POSIX, SCC, PersistenceModel
from sim.disk.disk import Disk


def export(process: Process, ack: History, names: str) -> None:
    """Write files, none of which is durable when it is acknowledged."""
    for name in names:
        process.write(process.open(f"/{name}", os.O_CREAT | os.O_WRONLY), b"x")
        ack(name)


def check(process: Process, known: Known) -> None:
    for name in map(str, known.acknowledged):
        with process.open_file(f"/{name}", "rb") as file:
            content = file.read()
        if content != b"x":
            raise LostAck("a file is lost", name=name)


def without_lines(workload: Callable[[Process, History], None]) -> RecordedWorkload:
    """Return a workload of which no lines are known, so that each file is a site of its own."""
    found = record(workload, POSIX, Image.empty())
    entries = [entry._replace(place=None) for entry in found.history.entries]
    return RecordedWorkload(found.journal, History(lambda: 0, entries=entries))


def recorded(names: str) -> RecordedWorkload:
    return without_lines(lambda process, ack: export(process, ack, names))


def diagnosed(names: str, model: PersistenceModel) -> Diagnosis:
    return diagnose(judged(recorded(names), check, [model]))


def paths(found: Diagnosis) -> list[str]:
    return [cause.gap.path for cause in found.causes if isinstance(cause.gap, Gap)]


def test_each_barrier_that_is_inserted_has_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures that are kept have none that loses one of the last files only."""
    monkeypatch.setattr(verdicts, "KEPT_FAILURES", 8)
    found = diagnosed("abcde", EXT4_ORDERED)
    assert paths(found) == [f"/{each}" for each in "abcde"]
    (line,) = repair_lines(found)
    assert line.startswith("repair    with these 5 fsyncs, none of ")
    exploration, failure = found.explorations["ext4-ordered"], found.causes[-1].failure
    assert failure.state not in {each.state for each in exploration.failures}
    (point,) = failure.crashes
    assert len(point.survivors.lost) == 1
    image = image_at(exploration.workload.journal, EXT4_ORDERED, point)
    known = exploration.workload.history.known(failure.entries)
    violation = exploration.checker.violation(Disk(image, EXT4_ORDERED), known)
    assert str(violation) == str(failure.violation) == "a file is lost (name='e')"


def test_a_barrier_without_a_failure_of_the_program_is_not_inserted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdicts, "KEPT_FAILURES", 8)
    monkeypatch.setattr(FailuresByBarrier, "_missed", lambda *_: iter(()))
    found = diagnosed("abcde", EXT4_ORDERED)
    repaired = found.repaired["ext4-ordered"].workload.journal
    inserted = sum(is_inserted(operation) for operation in repaired)
    assert 0 < inserted == len(paths(found)) < 5


def test_barriers_that_are_not_searched_for_are_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_BARRIERS", 2)
    found = diagnosed("abc", EXT4_ORDERED)
    (cause,) = [each for each in found.causes if isinstance(each.gap, NoGap)]
    assert cause_text(cause) == (
        "not searched for, because too many fsyncs are missing: add those that are named, and "
        "explore again"
    )
    assert len(paths(found)) == 2
    (line,) = repair_lines(found)
    assert line.endswith("; further ones may be missing: add these, and explore again")


def test_barriers_are_missing_that_one_model_alone_needs_too_many_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last model that is searched, scc, misses one barrier; ext4-ordered misses more."""
    monkeypatch.setattr(module, "MOST_BARRIERS", 1)

    def workload(process: Process, ack: History) -> None:
        for name in "abc":
            process.write(process.open(f"/{name}", os.O_CREAT | os.O_WRONLY), b"x")
        ack("files")
        process.mkdir("/end")
        ack("end")

    def check_all(process: Process, known: Known) -> None:
        names = process.listdir("/")
        if "end" in known.acknowledged and "end" not in names:
            raise LostAck("the end is lost")
        for name in "abc" if known.acknowledged else "":
            if name not in names or not process.stat(f"/{name}").st_size:
                raise LostAck("a file is lost", name=name)

    found = diagnose(judged(without_lines(workload), check_all, [SCC, EXT4_ORDERED]))
    assert NoGap.CUT_OFF in [cause.gap for cause in found.causes]


def test_more_than_a_dozen_barriers_are_found() -> None:
    found = diagnosed("abcdefghijklmn", SCC)
    assert len(paths(found)) == 14
    (line,) = repair_lines(found)
    assert line.startswith("repair    with these 14 fsyncs, none of ")


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_barrier_for_another_file_is_named_after_the_one_that_is_lost(
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_replaced: bool,
) -> None:
    """An fsync for the name of the first file, behind that of the second one, covers both."""
    create_a, write_a, ack, create_b, write_b, _ = events_of(recorded("ab"))
    barriers = (
        MissingBarrier(Synced.DIRECTORY, create_a.site, write_b.site),
        MissingBarrier(Synced.FILE, write_a.site, ack.site),
        MissingBarrier(Synced.DIRECTORY, create_a.site, ack.site),
        MissingBarrier(Synced.FILE, write_b.site, ack.site),
    )
    monkeypatch.setattr(failures_by_barrier, "repair", lambda *_: module.Repair(barriers, ()))
    # The gaps are shown as the barriers are inserted.
    monkeypatch.setattr(FailuresByBarrier, "widest_gap", FailuresByBarrier.gap)
    if not is_replaced:
        monkeypatch.setattr(FailuresByBarrier, "_at_its_loss", lambda _self, barrier, _: barrier)
    found = diagnosed("ab", POSIX)
    gaps = [cause.gap for cause in found.causes if isinstance(cause.gap, Gap)]
    *_, second = [gap for gap in gaps if gap.path == "/"]
    assert (second.first, second.last.kind) == (create_b, "ack" if is_replaced else "write")
    assert found.repaired["posix"].safe
