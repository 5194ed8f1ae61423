"""``in_forks`` gives the results of a loop, from several processes."""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest

from oracles.violation import Violation
from powercut.explorer.forks import _Fork, _Raised, _results, in_forks
from powercut.interpose.apart import run_apart
from sim.errors import HarnessError


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
def test_results_come_with_the_places_of_the_arguments(processes: int) -> None:
    found = dict(in_forks(lambda number: number * 2, range(5, 16), processes))
    assert found == {place: 2 * (place + 5) for place in range(11)}


def test_calls_run_in_other_processes() -> None:
    assert os.getpid() not in dict(in_forks(lambda _: os.getpid(), range(4), 2)).values()


def test_no_arguments_need_no_process() -> None:
    assert list(in_forks(lambda number: number, [], 2)) == []


def test_the_first_mistake_is_raised() -> None:
    def call(number: int) -> int:
        if number > 1:
            # The second process is the first to fail, with a later argument.
            time.sleep(0 if number == 3 else 0.3)
            raise HarnessError(f"call {number}")
        return number

    with pytest.raises(HarnessError, match="call 2"):
        list(in_forks(call, range(6), 2))


def test_a_result_that_cannot_be_sent_is_computed_here() -> None:
    class Local(Violation):
        def __init__(self) -> None:
            super().__init__("local", pid=os.getpid())

    def call(_: int) -> Callable[[], None] | Local:
        return Local()

    found = dict(in_forks(call, range(3), 2)).values()
    assert all(isinstance(each, Local) for each in found)
    assert {each.evidence["pid"] for each in found if isinstance(each, Local)} == {os.getpid()}


def test_a_process_that_ends_by_itself_is_a_mistake() -> None:
    with pytest.raises(HarnessError, match="ended by itself"):
        list(in_forks(lambda _: os._exit(3), range(4), 2))


class Over(Exception):
    """The time is over."""


def test_results_come_before_other_calls_end() -> None:
    def call(number: int) -> int:
        time.sleep(60 if number == 1 else 0)
        return number

    results = in_forks(call, range(6), 2)
    assert [next(results) for _ in range(3)] == [(0, 0), (2, 2), (4, 4)]
    assert isinstance(results, Generator)
    results.close()


def test_a_tick_ends_the_processes_and_those_below_them(tmp_path: Path) -> None:
    started = time.monotonic()

    def endless() -> bytes:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(60)
        return b""

    def tick() -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise Over

    with pytest.raises(Over):
        list(in_forks(lambda _: run_apart(endless, 60, "the check"), range(2), 2, tick))
    assert time.monotonic() - started < 30
    for process in map(int, os.listdir(tmp_path)):
        assert _has_ended(process)


def test_a_hang_is_placed_at_a_line_of_the_task_only() -> None:
    reading, writing = os.pipe()
    with pytest.raises(HarnessError, match="the check did not end within 2 s; end the loop"):
        run_apart(partial(os.read, reading, 1), 2, "the check")
    os.close(reading)
    os.close(writing)


def _has_ended(process: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_one_process_ticks_between_two_calls() -> None:
    calls: list[int] = []

    def tick() -> None:
        if len(calls) == 2:
            raise Over

    with pytest.raises(Over):
        list(in_forks(calls.append, range(9), 1, tick))
    assert calls == [0, 1]


def test_the_first_of_two_mistakes_that_come_together_is_raised() -> None:
    def fork(place: int) -> _Fork:
        reading, writing = Pipe(duplex=False)
        writing.send_bytes(pickle.dumps(_Raised(f"call {place}")))
        return _Fork(os.getpid(), reading, deque([place]))

    with pytest.raises(HarnessError, match="call 0"):
        list(_results([fork(0), fork(1)], lambda: None))
