"""``in_forks`` gives the results of a loop, from several processes."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.violation import Violation
from powercut.explorer.forks import in_forks
from sim.errors import HarnessError


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
def test_results_come_in_the_order_of_the_arguments(processes: int) -> None:
    assert in_forks(lambda number: number * 2, range(11), processes) == list(range(0, 22, 2))


def test_calls_run_in_other_processes() -> None:
    assert os.getpid() not in in_forks(lambda _: os.getpid(), range(4), 2)


def test_no_arguments_need_no_process() -> None:
    assert in_forks(lambda number: number, [], 2) == []


def test_the_first_mistake_is_raised() -> None:
    def call(number: int) -> int:
        if number > 1:
            raise HarnessError(f"call {number}")
        return number

    with pytest.raises(HarnessError, match="call 2"):
        in_forks(call, range(6), 2)


def test_a_result_that_cannot_be_sent_is_computed_here() -> None:
    class Local(Violation):
        def __init__(self) -> None:
            super().__init__("local", pid=os.getpid())

    def call(_: int) -> Callable[[], None] | Local:
        return Local()

    found = in_forks(call, range(3), 2)
    assert all(isinstance(each, Local) for each in found)
    assert {each.evidence["pid"] for each in found if isinstance(each, Local)} == {os.getpid()}


def test_a_process_that_ends_by_itself_is_a_mistake() -> None:
    with pytest.raises(HarnessError, match="ended by itself"):
        in_forks(lambda _: os._exit(3), range(4), 2)
