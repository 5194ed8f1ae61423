"""Budgets, failures and repetition of the lazy engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.explore import explore
from powercut.explorer.lazy import budget as budget_module
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.lazy import walk as walk_module
from powercut.explorer.lazy.boot import LazyDisk
from powercut.explorer.lazy.budget import Budget, GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite, crash_sites
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.descent import Descent
from powercut.explorer.lazy.estimate import check_estimate
from powercut.explorer.lazy.phases import OnePhase
from powercut.explorer.lazy.units import Trees
from powercut.explorer.lazy.walk import Walk
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.recovery_unit import recovery_unit
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.progress import UNLIMITED
from sim.disk.crash.undecided.question import Property, Question
from sim.disk.disk import Disk
from sim.errors import HarnessError, NeedsWholeImage

LAZY = Limits(engine=Engine.LAZY)
AUTO = Limits(engine=Engine.AUTO, states_per_point=4, samples=1)
POSIX = MODELS["posix"]


def _directories(process: Process, ack: History) -> None:
    for number in range(10):
        process.mkdir(f"/{number}")
    ack("all")


def _reads_all(process: Process, _known: Known) -> None:
    for number in range(10):
        process.access(f"/{number}", os.F_OK)


def _walk(check: Callable[[Process, Known], None], executions: int = 10_000) -> Walk:
    def run(disk: Disk, known: Known) -> None:
        check(Process(disk), known)

    budget = Budget(executions, 1_000_000)
    crashes = Crashes(POSIX, 0, UNLIMITED, budget)
    return Walk(OnePhase(run, History(lambda: 0)), Trees({}, {}), POSIX, crashes, budget)


def _sites() -> list[CrashSite]:
    workload = record(_directories, POSIX, Image.empty())
    return [*crash_sites(workload.journal, History(lambda: 0), POSIX, UNLIMITED, nested=False)]


def test_the_answers_on_a_path_of_an_estimate_multiply() -> None:
    with pytest.raises(GaveUp):
        check_estimate(_walk(_reads_all), _sites(), 200)


def test_a_crash_of_an_estimate_represents_those_that_are_left_out() -> None:
    cut = next(each for each in _sites() if each.layer is not None)
    walk = _walk(lambda *_: None)
    check_estimate(walk, [cut] * 128, 128)
    with pytest.raises(GaveUp):
        check_estimate(walk, [cut] * 128, 100)


def _listings(executions: int) -> int:
    """Check the names after the last crash; return the calls until the end or ``GaveUp``."""
    calls = 0

    def check(process: Process, _known: Known) -> None:
        nonlocal calls
        calls += 1
        process.access("/0", os.F_OK)
        process.listdir("/")

    *_, last = (site for site in _sites() if site.layer is not None)
    with suppress(GaveUp):
        for _ in _walk(check, executions).leaves(iter([last])):
            pass
    return calls


def test_a_walk_is_given_up_when_the_known_answers_need_too_many_executions() -> None:
    """The second question has 512 answers after each answer to the first one."""
    assert _listings(1024) == 1024
    assert 512 <= _listings(700) < 520


def test_an_attempt_may_take_fewer_executions_than_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eleven crashes lead to two leaves."""
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 0: 6})
    monkeypatch.setattr(lazy_explorer, "ON_REQUEST", 1)
    assert explore(_directories, lambda *_: None, "posix", LAZY).is_lazy


def test_the_last_attempt_is_longer_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 0: 300})
    engines = [explore(_directories, _reads_all, "posix", each).is_lazy for each in (LAZY, AUTO)]
    assert engines == [True, False]


def _fails(_result: object, known: Known) -> None:
    raise Violation(f"{len(known.acknowledged)} values")


def test_a_result_that_fails_after_two_numbers_of_values_is_two_failures() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/d")
        ack("d")

    found = explore(workload, TwoPhases(lambda _process: 0, _fails), "scc", LAZY)
    at_one = {str(e.violation) for e in found.failures if e.crashes[0].operation == 1}
    assert {each[0] for each in at_one} == {"0", "1"}


def test_one_execution_that_fails_at_several_crashes_is_one_state() -> None:
    def check(_process: Process, _known: Known) -> None:
        raise Violation("always")

    found = explore(_directories, check, "scc", LAZY)
    assert len(found.failures) > 2
    assert found.failed == found.states == 2


def test_the_plainest_survivors_of_a_failure_are_shown() -> None:
    """The old content is also that of the second write: only the third one need be lost."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"a")
        process.sync()
        ack("a")
        for content in (b"b", b"a", b"c"):
            process.pwrite(descriptor, content, 0)
        ack("c")

    def check(process: Process, known: Known) -> None:
        if len(known.acknowledged) == 2:
            with process.open_file("/f", "rb") as file:
                if file.read() == b"a":
                    raise Violation("a")

    found = explore(workload, check, "ext4-writeback", LAZY)
    assert found.is_lazy
    assert [len(each.crashes[0].survivors.lost) for each in found.failures] == [1]


def test_a_failure_that_its_image_shows_as_another_one_is_none() -> None:
    def check(process: Process, _known: Known) -> None:
        raise Violation("lazy") if isinstance(process.disk, LazyDisk) else LostAck("image")

    assert not explore(_directories, check, "scc", LAZY).is_lazy


def test_a_check_that_ends_in_another_way_than_before_is_refused() -> None:
    executions: list[int] = []

    def check(_process: Process, _known: Known) -> None:
        executions.append(1)
        if len(executions) > 2:
            raise Violation("now")

    with pytest.raises(HarnessError, match="nothing more, and ended with no violation, and now"):
        explore(_directories, check, "scc", LAZY)


def _exits(process: Process) -> None:
    if not process.access("/9", os.F_OK):
        sys.exit("missing")


def test_a_unit_may_exit() -> None:
    def check(process: Process, known: Known) -> None:
        try:
            recovery_unit(process, _exits)
        except SystemExit:
            if known.acknowledged:
                raise LostAck("9") from None

    found = explore(_directories, check, "posix", LAZY)
    assert (found.is_lazy, {type(each.violation) for each in found.failures}) == (True, {LostAck})


def _all_of(process: Process) -> int:
    _reads_all(process, Known((), ()))
    return 0


def test_executions_of_units_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, _all_of)

    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 0: 20})
    assert not explore(_directories, check, "posix", LAZY).is_lazy


def _makes_another(process: Process, ack: History) -> None:
    process.mkdir("/a")
    process.sync()
    ack("a")
    process.mkdir("/b")


def _creates_two(process: Process, known: Known) -> None:
    """Ask for another entry between two operations."""
    has_s, has_r = (process.access(name, os.F_OK) for name in ("/s", "/r"))
    if has_s:
        assert has_r
    elif not has_r and known.acknowledged:
        process.mkdir("/r")
        process.access("/b", os.F_OK)
        process.mkdir("/s")


def test_a_question_that_becomes_a_branch_keeps_the_operations_before_it() -> None:
    found = explore(_makes_another, _creates_two, "scc", Limits(nested=1, engine=Engine.LAZY))
    assert (found.is_lazy, found.safe) == (True, True)


def test_parts_of_boxes_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 0: 300})
    monkeypatch.setattr(lazy_explorer, "BOXES_PER_EXECUTION", 1)
    assert not explore(_directories, _reads_all, "posix", LAZY).is_lazy


def test_a_budget_counts_all_parts_of_a_division() -> None:
    budget = Budget(executions=1, boxes=4)
    budget.divide(2)
    budget.divide(2)
    with pytest.raises(GaveUp, match="too many boxes"):
        budget.divide()
    with pytest.raises(GaveUp, match="too many boxes"):
        Budget(executions=1, boxes=4).divide(5)


def test_results_that_would_fill_the_memory_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files that the default check reads are the results of its first phase."""

    def unsynced(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        for number in range(1, 5):
            process.write(descriptor, bytes([number]) * 512)
        ack({"/f": b"".join(bytes([number]) * 512 for number in range(1, 5))})

    monkeypatch.setattr(budget_module, "MOST_BYTES", 100_000)
    assert explore(unsynced, model="ext4", limits=LAZY).is_lazy
    monkeypatch.setattr(budget_module, "MOST_BYTES", 30_000)
    assert not explore(unsynced, model="ext4", limits=LAZY).is_lazy


def test_results_of_a_unit_take_few_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of a unit with one result are one box behind it."""

    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, _all_of)

    cut = [each for each in _sites() if each.layer is not None][-1]
    walk = _walk(check)
    (leaf,) = walk.leaves(iter([cut]))
    assert len(leaf.boxes) == len(cut.boxes)


@pytest.mark.parametrize("together", [2, 3, 4])
def test_visits_that_wait_for_one_execution_all_go_on(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaves() -> set[tuple[object, int]]:
        walk = _walk(_reads_all)
        return {
            ((leaf.site.point, repr(leaf.boxes[0].progress)), len(leaf.boxes))
            for leaf in walk.leaves(iter(_sites()))
        }

    expected = leaves()
    monkeypatch.setattr(walk_module, "_TOGETHER", together)
    assert leaves() == expected


def test_a_place_that_was_changed_too_often_needs_whole_images() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.sync()
        ack("f")
        for number in range(400):
            process.pwrite(descriptor, b"%d" % (number % 10), 0)

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/f", "rb") as file:
                file.read()

    limits = Limits(engine=Engine.LAZY, states_per_point=2, samples=1)
    assert not explore(workload, check, "ext4-writeback", limits).is_lazy


def test_a_division_of_a_place_that_was_changed_too_often_needs_whole_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_deep(*_: object) -> Iterator[object]:
        raise RecursionError

    monkeypatch.setattr(Walk, "split", too_deep)
    image = Image.empty()
    box = Box(image.platter, (), (), image.next_inode)
    with pytest.raises(NeedsWholeImage, match="changed too often"):
        _walk(_reads_all).divided(Question(Property.SIZE, 1), [box], 9)


def test_an_execution_that_was_given_up_gets_no_more_answers() -> None:
    descent = Descent((), lambda _question: 1)
    with pytest.raises(NeedsWholeImage):
        descent.fail(NeedsWholeImage("blocks"))
    with pytest.raises(NeedsWholeImage):
        descent.answer(Question(Property.SIZE, 1, end=9), [])


def test_executions_of_units_are_states() -> None:
    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, _all_of)

    found = explore(_directories, check, "scc", LAZY)
    assert found.states == 2 + 11


def test_the_simplest_failures_come_first() -> None:
    """The crash with two losses is reached before the one with a single loss."""

    def check(process: Process, _known: Known) -> None:
        there = [process.access(f"/{number}", os.F_OK) for number in range(10)]
        if there == [False, False, True] + 7 * [False] or there == [True] * 8 + [False, True]:
            raise Violation("missing", there=there)

    found = explore(_directories, check, "posix", LAZY)
    simplicities = [each.simplicity for each in found.failures]
    assert simplicities == sorted(simplicities)
    assert len({*simplicities}) > 1
