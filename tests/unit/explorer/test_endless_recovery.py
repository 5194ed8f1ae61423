"""A check that returns without a crash, and not after one, is a recovery that fails."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from oracles.violation import UnreadableAfterCrash
from powercut.explorer.built_explorer import MOST_ENDLESS
from powercut.explorer.cause import Diagnosis
from powercut.explorer.check_time import CheckTime
from powercut.explorer.check_violation import NOT_ENDED
from powercut.explorer.explore import explore, explore_models, judged
from powercut.explorer.forks import in_forks
from powercut.explorer.judge import Judge
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration
from powercut.report.findings import endless_lines
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import EXT4, POSIX
from sim.errors import HarnessError

TIMEOUT_S = 0.5
SOON = Limits(timeout=TIMEOUT_S)
NAMES = [f"file{number}" for number in range(30)]


def write_one(ack: History) -> None:
    with open("one", "wb") as file:
        file.write(b"1")
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    ack("one")


def write_many(ack: History) -> None:
    for name in NAMES:
        with open(name, "wb") as file:
            file.write(b"1")
    ack("many")


def notes(*explorations: Exploration) -> str:
    """Return the lines of a report on checks that were ended."""
    verdicts = {found.model.name: found for found in explorations}
    return "\n".join(endless_lines(Diagnosis(verdicts, (), {})))


def is_empty(name: str) -> bool:
    return os.path.exists(name) and not os.path.getsize(name)


def loop(_known: Known) -> None:
    while is_empty("one"):
        pass


def wait(_known: Known) -> None:
    if is_empty("one"):
        threading.Event().wait()


def leave(_known: Known) -> None:
    if is_empty("one"):
        os._exit(3)


def crash(_known: Known) -> None:
    if is_empty("one"):
        os.kill(os.getpid(), signal.SIGUSR1)


def wait_until_all_are_there(_known: Known) -> None:
    if any(is_empty(name) or not os.path.exists(name) for name in NAMES):
        threading.Event().wait()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give later calls a tenth of a second."""
    monkeypatch.setattr("powercut.explorer.check_time._LEAST_S", 0.1)


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("check", [loop, wait])
def test_a_check_that_does_not_end_after_a_crash_is_a_violation(
    check: Callable[[Known], None], engine: Engine
) -> None:
    found = explore(write_one, check, "ext4", Limits(timeout=TIMEOUT_S, engine=engine))
    assert not found.safe
    for failure in found.failures:
        assert isinstance(failure.violation, UnreadableAfterCrash)
        assert failure.violation.statement == NOT_ENDED
    at = str(found.failures[0].violation.evidence["at"])
    assert f"{os.path.basename(__file__)}:" in at
    assert str(found.failures[0].crashes[0]) == "1 after kill"


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize(
    ("check", "how"), [(leave, "exit status 3"), (crash, f"signal {signal.SIGUSR1:d}")]
)
def test_a_check_that_ends_its_process_after_a_crash_is_a_violation(
    check: Callable[[Known], None], how: str, engine: Engine
) -> None:
    found = explore(write_one, check, "ext4", Limits(engine=engine))
    statements = {each.violation.statement for each in found.failures}
    assert statements == {f"the check ended its process by itself, with {how}"}
    assert {type(each.violation) for each in found.failures} == {UnreadableAfterCrash}


def test_the_other_models_are_explored() -> None:
    verdicts = explore_models(write_one, loop, SOON)
    assert len(verdicts) == 8
    assert {found.how for found in verdicts.values()} == {"exhaustive"}
    assert not any(found.safe for found in verdicts.values())


def test_a_crash_of_the_recovery_after_which_the_check_does_not_end_is_a_violation() -> None:
    def check(_known: Known) -> None:
        if os.path.exists("begun"):
            threading.Event().wait()
        os.mkdir("begun")
        os.rmdir("begun")

    found = explore(write_one, check, "scc", Limits(timeout=TIMEOUT_S, nested=1))
    assert {len(each.crashes) for each in found.failures} == {2}
    assert {each.violation.statement for each in found.failures} == {NOT_ENDED}


def die(_known: Known) -> None:
    os._exit(3)


def hang(_known: Known) -> None:
    threading.Event().wait()


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("check", "how"), [(hang, "the check did not end within 0.5 s; it is at .*:"), (die, "3; let")]
)
def test_a_check_that_does_not_return_without_a_crash_is_refused(
    check: Callable[[Known], None], how: str, processes: int
) -> None:
    recorded = record(write_one, EXT4, Image.empty(), "/disk", SOON)
    with pytest.raises(HarnessError, match=f"^on the undamaged disk, without any crash, .*{how}"):
        judged(recorded, check, [EXT4], SOON, processes)


@pytest.mark.parametrize("processes", [1, 2])
def test_after_a_few_checks_that_do_not_end_the_other_states_are_left_out(processes: int) -> None:
    recorded = record(write_many, POSIX, Image.empty(), "/disk", SOON)
    found = judged(recorded, wait_until_all_are_there, [POSIX], SOON, processes)["posix"]
    # The processes go on with their next checks until the explorer looks at the count again.
    assert 0 < found.failed <= found.states < MOST_ENDLESS * 4
    assert found.how == "sampled"
    assert notes(found) == (
        "note      the check did not end on 8 states, and was ended; the other states were left "
        "out on posix"
    )


def test_an_exploration_whose_ended_checks_have_no_result_yet_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Judge, "endless", property(lambda _: next(counts, MOST_ENDLESS)))
    counts = iter([0])
    recorded = record(write_one, POSIX, Image.empty(), "/disk", SOON)
    found = Judge(lambda _process, _known: None, SOON).explore(recorded, POSIX)
    assert found.safe
    assert found.how == "stopped"


def test_after_many_checks_that_do_not_end_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("powercut.explorer.judge.MOST_ENDLESS_IN_ALL", 3)
    recorded = record(write_many, POSIX, Image.empty(), "/disk", SOON)
    verdicts = judged(recorded, wait_until_all_are_there, [EXT4, POSIX], SOON)
    assert verdicts["ext4"].failed == 3
    assert [found.how for found in verdicts.values()] == ["stopped", "stopped"]
    assert notes(*verdicts.values()) == (
        "note      the check did not end on 64 states in all, and was ended; then nothing more was "
        "checked, also in the search for missing fsyncs"
    )
    assert verdicts["posix"].checker.is_over(verdicts["posix"])


def test_a_call_has_less_time_after_one_that_did_not_end_also_in_another_fork() -> None:
    time = CheckTime(20.0)
    time.ended(0.2)
    time.ended(0.001)
    assert time.seconds == 20.0
    # Results come back from forks; changes of memory do not, but for that which is shared.
    assert dict(in_forks(lambda _: time.overrun(counts=True), range(2), 2)) == {0: None, 1: None}
    assert time.seconds == 2.0
    assert 1 <= time.endless <= 2
    time.overrun(counts=False)
    assert time.endless <= 2
    time.ended(3.0)
    assert time.seconds == 20.0
