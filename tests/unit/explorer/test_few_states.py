"""``Engine.AUTO`` builds few images for an interposed check before it tries the lazy engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from oracles.history import History, Known
from powercut.explorer import built_explorer, judge
from powercut.explorer.explore import explore, judged
from powercut.explorer.journals import Journals
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.sample import in_the_gate

LIMITS = Limits(states_per_point=64, samples=8)


@pytest.fixture(autouse=True)
def four_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "FEW_STATES", 4)


def _logged(ack: Callable[[object], None]) -> None:
    """Append a line of many bytes, each of which a torn write may lose."""
    descriptor = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.write(descriptor, b"x" * 200 + b"\n")
    os.fsync(descriptor)
    ack("line")


def _has_whole_lines(known: Known) -> None:
    with open("log", "rb") as file:
        lines = file.read().count(b"\n")
    assert lines >= len(known.acknowledged)


def _reads_the_size(known: Known) -> None:
    assert not known.acknowledged or os.stat("log").st_size > 0


def _refuses_lines(known: Known) -> None:
    with open("log", "rb") as file:
        assert not file.read()


def _may_be_missing(check: Callable[[Known], None]) -> Callable[[Known], None]:
    def checked(known: Known) -> None:
        if os.path.exists("log"):
            check(known)

    return checked


def test_a_point_with_more_states_is_decided_lazily(calls: list[Known]) -> None:
    found = explore(_logged, _may_be_missing(_reads_the_size), "posix", LIMITS)
    assert (found.is_lazy, found.how, found.safe) == (True, "exhaustive", True)
    assert 0 < len(calls) < LIMITS.states_per_point


def test_a_workload_without_a_check_builds_few_images_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The default check takes a process, and only the workload is interposed."""
    asked: list[int] = []

    class Counted(Journals):
        def __init__(self, history: History, limits: Limits, *others: Any, **how: Any) -> None:
            asked.append(limits.states_per_point)
            super().__init__(history, limits, *others, **how)

    def saved(ack: Callable[[object], None]) -> None:
        _logged(lambda _: ack({"log": b"x" * 200 + b"\n"}))

    monkeypatch.setattr(built_explorer, "Journals", Counted)
    explore(saved, None, "posix", LIMITS)
    assert asked[0] == 4


def test_a_failure_among_the_few_states_gives_the_verdict_of_a_sample(calls: list[Known]) -> None:
    found = explore(_logged, _may_be_missing(_refuses_lines), "posix", LIMITS)
    assert (found.is_lazy, found.how, found.safe) == (False, "sampled", False)
    assert len(calls) > 4


def test_a_failure_that_waits_for_its_batch_continues_the_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(built_explorer, "_FIRST_BATCH", 64)
    model = MODELS["posix"]
    recorded = record(_logged, model, Image.empty())
    check = _may_be_missing(_refuses_lines)
    alone, together = (
        judged(recorded, check, [model], LIMITS, processes)["posix"].states for processes in (1, 2)
    )
    assert alone == together > 4


def test_where_the_lazy_engine_gives_up_as_many_states_are_built_as_without_it(
    calls: list[Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 1: 1, 0: 1})
    check = _may_be_missing(_has_whole_lines)
    found = explore(_logged, check, "posix", LIMITS)
    built = explore(_logged, check, "posix", replace(LIMITS, engine=Engine.BRUTE))
    assert (found.is_lazy, found.how) == (False, "sampled")
    assert found.states == built.states > 64
    assert len(calls) < 3 * built.states


def _is_there(number: int) -> bool:
    return os.path.exists(f"log{number}")


def _logged_often(ack: Callable[[object], None], files: int = 8) -> None:
    for number in range(files):
        with open(f"log{number}", "wb", buffering=0) as file:
            file.write(b"x" * 200)
            os.fsync(file.fileno())
        ack(number)


@pytest.mark.parametrize("nested", in_the_gate([0, 1], lambda nested: nested == 0))
def test_the_checks_of_a_sample_are_bounded_and_spread_over_the_workload(
    calls: list[Known], monkeypatch: pytest.MonkeyPatch, nested: int
) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 1: 1, 0: 1})
    monkeypatch.setattr(judge, "MOST_CHECKS", 100)
    for module in (built_explorer, judge):
        monkeypatch.setattr(module, "MOST_FIRST_CHECKS", 100)

    def logged(ack: Callable[[object], None]) -> None:
        _logged_often(ack, files=16)

    def check(known: Known) -> None:
        # The first look at all crash points has the loss of every second call.
        assert 15 not in known.acknowledged or _is_there(14) or not _is_there(15)
        if nested:
            with open("mark", "wb", buffering=0) as file:
                file.write(b"x" * 200)

    found = explore(logged, check, "posix", replace(LIMITS, nested=nested))
    assert (found.is_lazy, found.how, found.safe) == (False, "sampled", False)
    assert 50 < found.states < 150
    # The name, which is not synced, is lost in a state of the last operations.
    assert {failure.crashes[0].operation for failure in found.failures} == {found.operations}
    assert len(calls) < 400


def _saved(ack: Callable[[object], None]) -> None:
    """Replace a file by a new one of many sectors, which is never synced."""
    with open("new", "wb") as file:
        file.write(b"x" * 65536)
    os.rename("new", "file")
    os.sync()
    ack("file")


def test_the_loss_of_a_large_write_is_found_before_the_lazy_engine_is_tried(
    calls: list[Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(known: Known) -> None:
        if known.acknowledged or os.path.exists("file"):
            with open("file", "rb") as file:
                assert file.read() == b"x" * 65536

    def unwanted(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(lazy_explorer.LazyExplorer, "explore", unwanted)
    found = explore(_saved, check, "ext4")
    assert (found.is_lazy, found.how, found.safe) == (False, "sampled", False)
    assert len(calls) < 100


def test_the_checks_are_bounded_where_one_of_the_few_states_fails(
    calls: list[Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "MOST_CHECKS", 40)

    def check(_known: Known) -> None:
        assert not os.path.exists("log0")

    found = explore(_logged_often, check, "posix", LIMITS)
    assert (found.how, found.safe) == ("sampled", False)
    assert len(calls) < 80


def test_fewer_states_are_checked_once_one_has_failed_in_a_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (built_explorer, judge):
        monkeypatch.setattr(module, "MOST_FIRST_CHECKS", 40)

    def check(_known: Known) -> None:
        assert not os.path.exists("log0")

    found = explore(_logged_often, check, "posix", LIMITS)
    assert (found.how, found.safe) == ("sampled", False)
    assert found.states < 120
    # They are still spread over the whole workload.
    failed = {failure.crashes[0].operation for failure in found.failures}
    assert max(failed) == found.operations
    assert len(failed) > found.operations / 4


def test_the_lazy_engine_is_tried_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 1: 1, 0: 1})
    tried: list[str] = []
    lazily = lazy_explorer.LazyExplorer.explore

    def explored(lazy: lazy_explorer.LazyExplorer, empty: Exploration) -> Exploration | None:
        tried.append(empty.model.name)
        return lazily(lazy, empty)

    monkeypatch.setattr(lazy_explorer.LazyExplorer, "explore", explored)
    found = explore(_logged, _may_be_missing(_has_whole_lines), "posix", LIMITS)
    found.checker.explore(found.workload, found.model)
    assert tried == ["posix"]
