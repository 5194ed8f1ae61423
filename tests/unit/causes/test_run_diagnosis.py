"""A failed run names the barrier that its program misses, and proves that it helps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from oracles.violation import LostAck
from powercut.causes.run_diagnosis import RunDiagnosis, diagnose_run
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.repair import OutOfTime
from powercut.fuzz.action import FAULT_ON, Action, ActionKind, Arguments, Json
from powercut.fuzz.reproducer import Finding, Reproducer
from powercut.fuzz.target import DiskTarget, MakeTarget
from powercut.fuzz.target_run import TargetRun
from powercut.report.cause import by_cause, cause_of, searched
from powercut.report.findings import NOT_SEARCHED
from sim.choices import SeededChoices
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS, SCC
from tests.unit.causes.failed_runs import LazyReader, action, crashed, failed, failed_runs
from tests.unit.fuzz.broken import careless, in_place, sound, undurable, unsynced
from tests.unit.fuzz.saved_file import content_of, sync_directory, write_temporary

ALL = tuple(MODELS)
BROKEN = "tests/unit/fuzz/broken.py"
SAVED = "tests/unit/fuzz/saved_file.py"
WRITE: dict[str, Json] = {"name": "write", "arguments": {"text": "text"}}


def diagnosed(make_target: MakeTarget, *actions: Action) -> RunDiagnosis:
    found = diagnose_run(failed(make_target, *actions))
    assert found is not None
    return found


def gaps(found: RunDiagnosis) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Return for each gap, as path, place and place, the models under which it does harm."""
    return {
        (cause.gap.path, str(cause.gap.first), str(cause.gap.last)): tuple(cause.failures)
        for cause in found.diagnosis.causes
        if isinstance(cause.gap, Gap)
    }


def test_missing_barrier_is_between_the_lost_rename_and_the_return_of_the_action() -> None:
    found = diagnosed(undurable, Action.of_plain(WRITE), crashed(WRITE, "power-cut"))
    rename = f"rename at {BROKEN}:24"
    ((path, first, last),) = gaps(found)
    assert (path, first) == ("/data", rename)
    assert last == f"ack at {SAVED}:{line_of(SAVED, 'self._shadow.acknowledge()') + 1}"
    assert gaps(found)[path, first, last] == ALL
    assert found.cause.harms == {}


def line_of(file: str, text: str) -> int:
    lines = Path(file).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_models_that_keep_the_content_are_safe() -> None:
    found = diagnosed(unsynced, crashed(WRITE, "power-cut"))
    write = f"write at {SAVED}:{line_of(SAVED, 'written = process.write')}"
    assert list(gaps(found)) == [("/data/state.json.tmp", write, f"rename at {BROKEN}:29")]
    assert found.diagnosis.safe_models == ("scc", "ext4-journal")


def test_with_the_missing_barriers_no_state_of_the_power_cut_fails() -> None:
    found = diagnosed(careless, Action.of_plain(WRITE), crashed(WRITE, "power-cut"))
    assert len(gaps(found)) == 2
    for name, repaired in found.diagnosis.repaired.items():
        assert repaired.safe, name
        assert repaired.exhaustive, name
        assert repaired.states < found.diagnosis.explorations[name].states, name


def test_recovery_that_trusts_the_page_cache_misses_a_barrier() -> None:
    """The action is killed behind its rename, and the value that recovery shows is lost then."""
    found = diagnosed(
        LazyReader,
        crashed(action("put"), "kill", operation=4),
        crashed(action("put"), "power-cut", operation=1),
    )
    ((path, first, last),) = gaps(found)
    assert path == "/"
    assert first.startswith("rename at ")
    assert last.startswith("ack at ")
    assert LazyReader.recover.__code__.co_firstlineno < int(last.rpartition(":")[2])


def test_last_power_cut_without_whose_losses_the_run_passes_is_the_decisive_one() -> None:
    """The second power cut loses something as well, and another write that no value depends on."""
    found = diagnosed(
        undurable, Action.of_plain(WRITE), crashed(WRITE, "power-cut"), crashed(WRITE, "power-cut")
    )
    assert [first for _, first, _ in gaps(found)] == [f"rename at {BROKEN}:24"]


def test_kill_has_no_missing_barrier() -> None:
    shorter: dict[str, Json] = {"name": "write", "arguments": {"text": "t"}}
    run = failed(in_place, Action.of_plain(WRITE), crashed(shorter, "kill", operation=1))
    assert diagnose_run(run) is None
    finding = searched(Finding(run, Reproducer(run.log, "", {}), Path("f"))).finding
    assert finding.cause is not None
    assert finding.cause.text.endswith("kill during write; no fsync helps")


def test_a_fault_before_a_kill_is_part_of_the_cause() -> None:
    shorter: dict[str, Json] = {"name": "write", "arguments": {"text": "t"}}
    fault = Action(FAULT_ON, {"plan": "fsync /other #3 EIO:ext4"})
    run = failed(in_place, Action.of_plain(WRITE), fault, crashed(shorter, "kill", operation=1))
    finding = searched(Finding(run, Reproducer(run.log, "", {}), Path("f"))).finding
    assert finding.cause is not None
    assert finding.cause.text.endswith("; fault fsync /other #* EIO:ext*, and kill during write")
    assert finding.cause.group.endswith("; kill during write")


class DoubleWrite(DiskTarget):
    """Writes a page in place, after a copy; an fsync of the copy that fails is repeated only."""

    OLD = b"1" * 600

    def __init__(self) -> None:
        self.process: Process

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("put", 1, self.put)]

    def recover(self, host: Process) -> None:
        self.process = host
        for path in ("/page", "/copy"):
            if path[1:] not in host.listdir("/"):
                self._write(path, self.OLD)
        sync_directory(host, "/")

    def check_recovered(self) -> None:
        page, copy = (content_of(self.process, path) for path in ("/page", "/copy"))
        if page != self.OLD and copy == self.OLD:
            raise LostAck("the page has changed, and its copy has not")

    def put(self, _arguments: Arguments) -> str:
        for path in ("/copy", "/page"):
            self._write(path, b"2" * 600)
        return "stored"

    def _write(self, path: str, data: bytes) -> None:
        descriptor = self.process.open(path, os.O_CREAT | os.O_WRONLY)
        self.process.write(descriptor, data)
        try:
            self.process.fsync(descriptor)
        except OSError:
            self.process.fsync(descriptor)
        self.process.close(descriptor)


def test_a_fault_before_a_power_cut_is_part_of_the_cause_if_no_fsync_helps() -> None:
    fault = Action(FAULT_ON, {"plan": "fsync /copy #1 EIO:ext4"})
    run = failed(DoubleWrite, fault, crashed(action("put"), "power-cut", operation=4))
    finding = searched(Finding(run, Reproducer(run.log, "", {}), Path("f"))).finding
    assert finding.cause is not None
    assert finding.cause.text.endswith("; fault fsync /copy #* EIO:ext*, and power-cut during put")
    assert finding.cause.rank > (0, 1)


def test_run_that_passes_is_repeated_with_the_same_outcome_when_it_is_recorded() -> None:
    """Recording the lifetimes and the returns changes nothing."""
    run, choices = TargetRun(sound), SeededChoices(5)
    again = TargetRun(sound, with_places=True)
    for target_run in (run, again):
        choices = SeededChoices(5)
        for _ in range(20):
            target_run.perform(target_run.propose(choices), choices)
        target_run.finish()
    assert run.log == again.log


def test_search_ends_when_the_time_is_over() -> None:
    run = failed(undurable, Action.of_plain(WRITE), crashed(WRITE, "power-cut"))
    with pytest.raises(OutOfTime):
        diagnose_run(run, wall_seconds=0)
    finding = Finding(run, Reproducer(run.log, "", {}), Path("f"))
    ended = searched(finding, seconds=0).finding.cause
    assert ended is not None
    assert ended.text == (
        "a power cut loses operations on state.json; the search for a missing fsync was ended "
        "after 0 s of processor time"
    )
    late = searched(finding, wall_seconds=0).finding.cause
    assert late is not None
    assert late.text == (
        "a power cut loses operations on state.json; the search for a missing fsync was "
        "interrupted, or its time was over"
    )


def test_runs_that_miss_one_barrier_are_one_cause() -> None:
    """The property, the names and the lost value differ; the lost rename is the same."""
    runs = [
        failed(undurable, crashed(WRITE, "power-cut")),
        failed(undurable, Action.of_plain(WRITE), crashed(WRITE, "power-cut")),
        failed(unsynced, crashed(WRITE, "power-cut")),
    ]
    findings = [
        searched(Finding(run, Reproducer(run.log, "", {}), Path(str(number)))).finding
        for number, run in enumerate(runs)
    ]
    groups = [[finding.path.name for finding in group] for group in by_cause(findings)]
    assert groups == [["0", "1"], ["2"]]
    plain = findings[0].cause
    assert plain is not None
    assert plain.plain()["models"] == list(ALL)
    assert replace(findings[0], cause=None) != findings[0]


class Taken(DiskTarget):
    """Replaces a file without an fsync of it, and then removes another one."""

    def __init__(self) -> None:
        self.is_taken = self.is_there = False
        self.process: Process

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("take", 1, self.take)]

    def recover(self, host: Process) -> None:
        self.process = host
        head = content_of(host, "/head")
        if head is None:
            host.close(host.open("/item", os.O_CREAT))
            sync_directory(host, "/")
        self.is_there = not int(head or b"0") and "item" in host.listdir("/")

    def check_recovered(self) -> None:
        if self.is_taken and self.is_there:
            raise LostAck("the item returns")

    def take(self, _arguments: Arguments) -> str:
        host = self.process
        host.replace(write_temporary(host, "/head", b"1", sync=False), "/head")
        sync_directory(host, "/")
        host.unlink("/item")
        self.is_taken = True
        return "taken"


def test_a_missing_barrier_is_one_cause_before_and_after_the_rename_of_its_file() -> None:
    first: dict[str, Finding] = {}
    for run in failed_runs(Taken, crashed(action("take"), "power-cut")):
        finding = searched(Finding(run, Reproducer(run.log, "", {}), Path("0"))).finding
        first.setdefault(cause_of(finding).text.partition(" between")[0], finding)
    assert sorted(first) == ["no fsync of /head", "no fsync of /head.tmp"]
    assert len(by_cause(first.values())) == 1


class Appended(LazyReader):
    """Appends to a file without an fsync of it, or of its directory."""

    def check_recovered(self) -> None:
        found = len(content_of(self.process, "/a") or b"")
        if found < self.written:
            raise LostAck("bytes are lost")
        self.written = found

    def put(self, _arguments: Arguments) -> str:
        descriptor = self.process.open("/a", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.written += self.process.write(descriptor, b"x")
        self.process.close(descriptor)
        return "put"


def test_the_cause_is_one_that_fails_under_the_model_of_the_run() -> None:
    (run, *_) = failed_runs(Appended, crashed(action("put"), "power-cut"), model=SCC)
    cause = cause_of(searched(Finding(run, Reproducer(run.log, "", {}), Path("0"))).finding)
    assert cause.text.startswith("no fsync of /a between write at ")
    assert (cause.unsafe, cause.safe) == (ALL, ())
    (other,) = cause.others
    assert other.startswith("no fsync of / between create at ")
    assert other.endswith(" (lost acknowledgement, at this power cut on posix only)")


def test_a_model_is_safe_if_no_cause_fails_under_it() -> None:
    for run in failed_runs(Appended, crashed(action("put"), "power-cut")):
        cause = cause_of(searched(Finding(run, Reproducer(run.log, "", {}), Path("0"))).finding)
        if cause.text.startswith("no fsync of / "):
            assert (cause.unsafe, cause.safe) == (("posix",), ())
            return
    raise AssertionError("no run loses the directory entry alone")


def test_failures_whose_causes_were_not_searched_are_apart_if_they_break_other_properties() -> None:
    runs = {
        type(run.failure): run for run in failed_runs(Taken, crashed(action("take"), "power-cut"))
    }
    findings = [Finding(run, Reproducer(run.log, "", {}), Path("0")) for run in runs.values()]
    assert len(by_cause(findings)) == len(findings) == 2
    assert all(cause_of(each).text.endswith(NOT_SEARCHED) for each in findings)
