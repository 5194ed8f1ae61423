"""The pace of an exploration: shares of the time, and a heartbeat without a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from oracles.history import History
from powercut.cli.pace import HEARTBEAT_SECONDS, Pace
from powercut.explorer.explore import explore
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("powercut.cli.pace.time.monotonic", clock)
    return clock


def explored(model: str) -> Exploration:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/d")
        ack("made")

    return explore(workload, lambda _process, _known: None, model)


def pace(seconds: float | None = None, *, terminal: bool = False) -> Pace:
    console = Console(file=io.StringIO(), force_terminal=terminal)
    return Pace(console, "app:save", seconds, ["scc", "xfs"])


def test_each_model_has_its_share_of_the_time(clock: Clock) -> None:
    paced = pace(100)
    assert paced.tick(explored("scc"), 1)
    clock.now += 49
    assert paced.tick(explored("scc"), 1)
    clock.now += 2
    assert not paced.tick(explored("scc"), 1)
    assert paced.tick(explored("xfs"), 1)
    clock.now += 49
    assert not paced.tick(explored("xfs"), 1)


def test_after_a_failure_a_part_is_kept_for_the_search_for_barriers(clock: Clock) -> None:
    paced, failed = pace(100), explored("scc")
    failed.failed = 1
    assert paced.tick(failed, 1)
    clock.now += 31
    assert not paced.tick(failed, 1)
    assert paced.tick(explored("xfs"), 1)
    clock.now += 29
    assert not paced.tick(explored("xfs"), 1)
    paced.diagnose()
    assert paced.tick(explored("scc"), 1)
    clock.now += 40
    assert not paced.tick(explored("scc"), 1)


def test_without_a_limit_the_time_is_never_over(clock: Clock) -> None:
    paced = pace()
    clock.now += 1e6
    assert paced.tick(explored("xfs"), 1)


def test_a_pipe_gets_a_line_now_and_then(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    paced = pace()
    with paced.shown():
        for _ in range(5):
            paced.tick(explored("xfs"), 1)
            clock.now += HEARTBEAT_SECONDS / 2
    assert capsys.readouterr().err == 2 * ("... app:save on xfs: operation 1 of 1, 7 states\n")


def test_a_terminal_gets_no_lines(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    paced = pace(terminal=True)
    with paced.shown():
        clock.now += 10 * HEARTBEAT_SECONDS
        paced.tick(explored("xfs"), 1)
    assert capsys.readouterr().err == ""
