"""The crash runner: where it plans crashes, and its comparison of two recoveries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from faults.crash_point import CrashKind, Phase
from oracles.violation import NotIdempotent, UnreadableAfterCrash
from powercut.fuzz.action import Action, ActionKind, Arguments
from powercut.fuzz.crash_runner import CrashPlanner, PlannedCrash
from powercut.fuzz.target import DiskTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, PlainChoices
from sim.disk.calls.process import Process


class Highest(Choices):
    """Chooses the last answer of every question."""

    def integer(self, label: str, low: int, high: int) -> int:
        return high


def test_planner_crashes_in_the_last_operation_of_an_action_as_well() -> None:
    planner = CrashPlanner()
    planner.took("send", 7)
    assert planner.propose(Highest(), "send").operation == 7


class Booting(DiskTarget):
    """A target whose boots count in one file and do ``more`` to the disk."""

    changed_by_boot = frozenset(("/count",))

    def __init__(self, more: Callable[[Process, int], object]) -> None:
        self._more = more
        self._boots = 0
        self.second_recoveries = 0

    def actions(self) -> Sequence[ActionKind]:
        return (ActionKind("nothing", 1, lambda _: "done"),)

    def recover(self, host: Process) -> None:
        self._boots += 1
        descriptor = host.open("/count", os.O_CREAT | os.O_RDWR)
        host.write(descriptor, b"%d" % self._boots)
        host.close(descriptor)
        self._more(host, self._boots)

    def check_second_recovery(self) -> None:
        self.second_recoveries += 1


CHANGES: dict[str, Callable[[Process, int], object]] = {
    "a file": lambda host, boots: host.close(host.open(f"/f{boots}", os.O_CREAT)),
    "an empty directory": lambda host, boots: host.mkdir(f"/d{boots}"),
    "a link": lambda host, boots: host.symlink("x", f"/l{boots}"),
    "permissions": lambda host, boots: host.chmod("/count", 0o600 + boots),
    "a removal": lambda host, boots: None if boots % 2 else host.unlink("/count"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_second_recovery_that_changes_anything_else_is_a_violation(change: str) -> None:
    run = TargetRun(lambda: Booting(CHANGES[change]))
    with pytest.raises(NotIdempotent):
        run.finish()


@pytest.mark.parametrize("change", ["a file", "an empty directory", "a link"])
def test_files_whose_names_match_a_pattern_come_and_go(change: str) -> None:
    class Patterned(Booting):
        changed_by_boot = frozenset(("/count", "/f*", "/d*", "/l*"))

    run = TargetRun(lambda: Patterned(CHANGES[change]))
    if change == "a file":
        run.finish()
        return
    with pytest.raises(NotIdempotent, match="in changed_by_boot of the target"):
        run.finish()


class Fragile(DiskTarget):
    """A target whose recovery raises ``failure`` if it cannot read."""

    refusals = (OSError,)

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def actions(self) -> Sequence[ActionKind]:
        return (ActionKind("nothing", 1, lambda _: "done"),)

    def recover(self, host: Process) -> None:
        descriptor = host.open("/count", os.O_CREAT | os.O_RDWR)
        host.write(descriptor, b"1")
        try:
            host.pread(descriptor, 1, 0)
        except OSError:
            raise self._failure from None


class ReadingCheck(Fragile):
    """A target whose check reads the disk; ``checked`` has the result of each call of it."""

    def __init__(self, checked: list[bool]) -> None:
        self._checked = checked

    def recover(self, host: Process) -> None:
        self._host = host

    def check_recovered(self) -> None:
        descriptor = self._host.open("/count", os.O_CREAT | os.O_RDWR)
        self._checked.append(False)
        self._host.pread(descriptor, 1, 0)
        self._checked[-1] = True


def _recover_under_a_fault(make_target: Callable[[], DiskTarget]) -> None:
    crash: Arguments = {
        "action": {"name": "nothing", "arguments": {}},
        "crashes": [PlannedCrash(0, Phase.AFTER, CrashKind.KILL).plain()],
    }
    run = TargetRun(make_target)
    run.perform(Action("fault_on", {"plan": "read * EIO"}), PlainChoices())
    run.perform(Action("crash_and_recover", crash), PlainChoices())
    run.finish()


def test_recovery_may_refuse_under_a_fault() -> None:
    _recover_under_a_fault(lambda: Fragile(OSError(5, "broken")))


def test_recovery_that_fails_under_a_fault_in_another_way_is_a_violation() -> None:
    with pytest.raises(UnreadableAfterCrash, match="not by a refusal"):
        _recover_under_a_fault(lambda: Fragile(IndexError("out of range")))


def test_a_check_that_a_fault_refuses_is_repeated_after_a_restart_without_it() -> None:
    checked: list[bool] = []
    _recover_under_a_fault(lambda: ReadingCheck(checked))
    # At the first start, under the fault, after it, and at the two restarts of the end.
    assert checked == [True, False, True, True, True]


def test_an_error_of_a_check_without_a_fault_is_a_failure() -> None:
    class Refused(ReadingCheck):
        def check_recovered(self) -> None:
            if self._checked:
                raise OSError(5, "broken")
            super().check_recovered()

    with pytest.raises(OSError, match="broken"):
        TargetRun(lambda: Refused([])).finish()


def test_files_that_every_boot_rewrites_may_change() -> None:
    targets: list[Booting] = []

    def make_target() -> Booting:
        targets.append(Booting(lambda _host, _boots: None))
        return targets[-1]

    TargetRun(make_target).finish()
    assert targets[-1].second_recoveries == 1


class Looking(DiskTarget):
    """A target whose recovery does nothing, and whose action may do nothing either."""

    def actions(self) -> Sequence[ActionKind]:
        return (ActionKind("look", 1, lambda _: "done"), ActionKind("write", 1, self._write))

    def recover(self, host: Process) -> None:
        self._host = host

    def _write(self, _arguments: Arguments) -> str:
        self._host.mkdir("/d")
        return "done"


def test_no_more_crash_points_are_reached_than_there_are() -> None:
    run = TargetRun(Looking)
    crashes = [PlannedCrash(0, Phase.AFTER, CrashKind.KILL).plain()]
    for name in ("look", "write", "look"):
        arguments: Arguments = {"action": {"name": name, "arguments": {}}, "crashes": crashes}
        run.perform(Action("crash_and_recover", arguments), PlainChoices())
    # The return of any action; mkdir in three phases and two returns.
    assert (run.tally.points.reached, run.tally.points.total) == (1, 4)
    assert (run.tally.pairs.reached, run.tally.pairs.total) == (2, 5)


def test_an_action_that_is_interrupted_does_not_count_as_shorter() -> None:
    class Writing(Looking):
        def _write(self, _arguments: Arguments) -> str:
            for name in ("/a", "/b", "/c"):
                self._host.close(self._host.open(name, os.O_CREAT | os.O_TRUNC))
                self._host.rename(name, "/d")
            return "done"

    run = TargetRun(Writing)
    for operation in (0, 2):
        crashes = [PlannedCrash(operation, Phase.AFTER, CrashKind.KILL).plain()]
        arguments: Arguments = {"action": {"name": "write", "arguments": {}}, "crashes": crashes}
        run.perform(Action("crash_and_recover", arguments), PlainChoices())
    assert run.crash_runner.planner.propose(Highest(), "write").operation == 6
