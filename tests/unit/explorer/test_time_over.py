"""An exploration whose time is over ends soon, and its verdict has what was found until then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.history import History, Known
from powercut.explorer.cause import NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.lazy.lazy_explorer import LazyExplorer
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.explorer.repair import OutOfTime, repair
from powercut.explorer.verdicts import Exploration
from powercut.report.findings import finding_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX

SLEEP_S = 0.3


def creates(process: Process, ack: History) -> None:
    """Create eight files, of which a power cut may lose any."""
    for name in "abcdefgh":
        process.close(process.open(f"/{name}", os.O_CREAT | os.O_WRONLY))
    ack(dict.fromkeys((f"/{name}" for name in "abcdefgh"), b""))


def recorded() -> RecordedWorkload:
    return record(creates, POSIX, Image.empty())


def over_after(seconds: float) -> Callable[[Exploration, int], bool]:
    """Return a tick that stops an exploration some time after its first call."""
    end: list[float] = []

    def tick(_found: Exploration, _operation: int) -> bool:
        end.append(time.monotonic() + seconds)
        return time.monotonic() < end[0]

    return tick


def test_failures_are_grouped_by_property_and_no_barrier_is_searched() -> None:
    is_over = False
    verdicts = judged(recorded(), None, [POSIX], tick=lambda _found, _operation: not is_over)
    is_over = True
    found = diagnose(verdicts)
    assert {cause.failure.violation.property_name for cause in found.causes} == {
        "LostAck", "TornRecord",
    }  # fmt: skip
    assert {cause.gap for cause in found.causes} == {NoGap.NOT_SEARCHED}
    assert found.repaired == {}
    assert not verdicts["posix"].stopped


def test_harm_that_needs_further_checks_is_left_out() -> None:
    checks, is_over = 0, False

    def check(process: Process, known: Known) -> None:
        nonlocal checks
        checks += 1
        names = process.listdir("/")
        assert "a" in names or not known.acknowledged, f"/a is missing among {names}"

    verdicts = judged(recorded(), check, [POSIX], tick=lambda _found, _operation: not is_over)
    is_over, before = True, checks
    found = diagnose(verdicts)
    assert checks == before
    (cause,) = found.causes
    assert cause.harms == {}
    assert next(finding_lines(found, cause)) == "FAILED  CheckFailed  on posix"


def test_the_search_for_barriers_ends_before_the_next_candidate() -> None:
    is_over = False
    verdicts = judged(recorded(), None, [POSIX], tick=lambda _found, _operation: not is_over)
    is_over = True

    def explore(*_: object) -> Exploration:
        raise AssertionError("there is no time")

    with pytest.raises(OutOfTime):
        repair(verdicts["posix"], explore)


def test_it_has_checked_the_states_that_it_counts() -> None:
    checked = []

    def check(process: Process, _: Known) -> None:
        checked.append(process.listdir("/"))

    def tick(_found: Exploration, _operation: int) -> bool:
        return len(checked) < 5

    (found,) = judged(recorded(), check, [POSIX], tick=tick).values()
    assert (found.stopped, found.exhaustive, found.how) == (True, False, "stopped")
    assert found.states == len(checked) >= 5
    assert str(found) == f"posix: no failure in the first {len(checked)} states, stopped"
    diagnosis = diagnose({"posix": found})
    assert (diagnosis.safe_models, diagnosis.unfinished_models) == ((), ("posix",))


def test_states_that_passed_before_the_lazy_engine_was_stopped_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(_lazy: LazyExplorer, empty: Exploration) -> Exploration:
        empty.stopped = True
        return empty

    def check(process: Process, _: Known) -> None:
        process.listdir("/")

    monkeypatch.setattr(LazyExplorer, "explore", stopped)
    limits = Limits(states_per_point=1, samples=1)
    (found,) = judged(recorded(), check, [POSIX], limits).values()
    (built,) = judged(recorded(), check, [POSIX], replace(limits, engine=Engine.BRUTE)).values()
    assert built.how == "sampled"
    assert str(found) == f"posix: no failure in the first {built.states} states, stopped"


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
@pytest.mark.parametrize("processes", [1, 2])
def test_without_time_nothing_is_checked(engine: Engine, processes: int) -> None:
    def check(_process: Process, _known: Known) -> None:
        raise AssertionError("there is no time")

    limits = Limits(engine=engine)
    verdicts = judged(recorded(), check, [POSIX], limits, processes, lambda *_: False)
    found = verdicts["posix"]
    assert (found.states, found.failed, found.how) == (0, 0, "stopped")


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
@pytest.mark.parametrize("processes", [1, 2])
def test_slow_checks_end_soon(engine: Engine, processes: int) -> None:
    def check(process: Process, _known: Known) -> None:
        time.sleep(SLEEP_S)
        process.listdir("/")

    limits, begin = Limits(engine=engine), time.monotonic()
    verdicts = judged(recorded(), check, [POSIX], limits, processes, over_after(1.0))
    # The check that runs at the end, and five seconds for a slow machine; 64 checks take longer.
    assert time.monotonic() - begin < 1.0 + SLEEP_S + 5.0
    found = verdicts["posix"]
    assert found.how == "stopped"
    # At most those for which there was time; the first ones have been checked.
    assert found.states <= processes * 5
    assert found.states > 0 or engine == Engine.LAZY


def test_failures_of_an_unfinished_batch_are_reported() -> None:
    def check(process: Process, _known: Known) -> None:
        if len(process.listdir("/")) == 1:
            time.sleep(60)
        raise AssertionError("it fails")

    limits, begin = Limits(engine=Engine.BRUTE), time.monotonic()
    verdicts = judged(recorded(), check, [POSIX], limits, 2, over_after(1.0))
    assert time.monotonic() - begin < 30
    found = verdicts["posix"]
    assert found.stopped
    assert 0 < found.failed == found.states == len(found.failures) < 8


def test_the_time_is_read_for_every_state_that_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All states of a crash point may be old ones, and then nothing is checked for long."""
    monkeypatch.setattr("powercut.explorer.ticker._TICK_S", 0)
    asked = 0

    def tick(_found: Exploration, _operation: int) -> bool:
        nonlocal asked
        asked += 1
        return True

    found = judged(recorded(), None, [POSIX], tick=tick)["posix"]
    assert found.built > found.states
    assert asked > found.built
