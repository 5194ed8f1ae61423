"""A time limit interrupts code that does not end, and leaves alarms as they were."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count

import pytest

from powercut.fuzz.campaign import campaign
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.time_limit import TimeOver, ended_after
from sim.disk.crash.persistence import POSIX


@pytest.fixture
def alarm() -> Iterator[list[int]]:
    """An alarm in an hour, in place of that of pytest; the signals that arrive."""
    arrived: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: arrived.append(number))
    timer = signal.setitimer(signal.ITIMER_REAL, 3600)
    try:
        yield arrived
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def endless() -> None:
    numbers = count()
    while True:
        next(numbers)


def test_code_that_does_not_end_is_interrupted() -> None:
    with pytest.raises(TimeOver), ended_after(0):
        endless()


def test_alarm_that_was_set_before_is_set_afterwards(alarm: list[int]) -> None:
    with ended_after(1000):
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= 1001
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 3500
    signal.raise_signal(signal.SIGALRM)
    assert alarm == [signal.SIGALRM]


def test_a_slow_run_at_the_end_of_a_campaign_is_not_taken_for_an_endless_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []

    def noted(seconds: float) -> AbstractContextManager[None]:
        limits.append(seconds)
        return nullcontext()

    monkeypatch.setattr(campaign, "ended_after", noted)
    target = TargetEntry("saved-file", "tests.unit.fuzz.saved_file:saved_file")
    plan = campaign.Plan((target,), POSIX, 0, 1, deadline=time.monotonic() - 1)
    campaign.run_batch(next(campaign.batches(plan)))
    assert {*limits} == {campaign.ENDLESS_SECONDS}
