"""A failed run has a known cause if it passes with the barriers that this cause misses."""

from __future__ import annotations

from powercut.causes.known_cause import KnownCause, has_another_cause, known_cause
from powercut.causes.run_diagnosis import diagnose_run
from powercut.fuzz.action import Action, Json
from powercut.fuzz.target_run import TargetRun
from tests.unit.causes.failed_runs import action, crashed, failed, failed_runs
from tests.unit.fuzz.broken import in_place, undurable, unsynced
from tests.unit.fuzz.two_files import TwoFiles

WRITE: dict[str, Json] = {"name": "write", "arguments": {"text": "text"}}
APPEND = crashed(action("append"), "power-cut")
PUBLISH = crashed(action("publish"), "power-cut")


def cause_of(run: TargetRun) -> KnownCause:
    return known_cause(diagnose_run(run))


def test_run_that_misses_the_same_barrier_has_the_known_cause() -> None:
    known = cause_of(failed(TwoFiles, PUBLISH))
    for run in failed_runs(TwoFiles, Action.of_plain(action("publish")), PUBLISH):
        assert not has_another_cause(run, [known])


def test_run_that_misses_another_barrier_has_another_cause() -> None:
    append, publish = failed(TwoFiles, APPEND), failed(TwoFiles, PUBLISH)
    assert has_another_cause(append, [cause_of(publish)])
    assert has_another_cause(publish, [cause_of(append)])
    assert not has_another_cause(append, [cause_of(publish), cause_of(append)])


def test_cause_is_not_alone_if_the_run_loses_what_a_known_barrier_keeps() -> None:
    runs = [*failed_runs(TwoFiles, Action.of_plain(action("append")), PUBLISH)]
    known = [cause_of(failed(TwoFiles, APPEND))]
    others = [run for run in runs if has_another_cause(run, known)]
    alone = [run for run in others if has_another_cause(run, known, is_alone=True)]
    assert 0 < len(alone) < len(others)
    losses = [run.log.steps[1].crashes[0].point.survivors.lost for run in alone]
    assert not any(0 in lost for lost in losses)


def test_torn_write_has_the_cause_of_the_lost_one() -> None:
    runs = [*failed_runs(unsynced, crashed(WRITE, "power-cut"))]
    torn = [run for run in runs if run.log.steps[0].crashes[0].point.survivors.torn]
    lost = next(run for run in runs if run not in torn)
    assert torn
    assert not any(has_another_cause(run, [cause_of(lost)]) for run in torn)


def test_cut_write_that_no_barrier_prevents_is_known_by_what_it_loses() -> None:
    runs = [
        run
        for run in failed_runs(in_place, Action.of_plain(WRITE), crashed(WRITE, "power-cut"))
        if diagnose_run(run) is not None
    ]
    known = [cause_of(run) for run in runs]
    assert not any(has_another_cause(run, known) for run in runs)


def test_kill_is_another_cause_than_a_missing_barrier() -> None:
    shorter: dict[str, Json] = {"name": "write", "arguments": {"text": "t"}}
    kill = failed(in_place, Action.of_plain(WRITE), crashed(shorter, "kill", operation=1))
    barrier = failed(undurable, crashed(WRITE, "power-cut"))
    assert cause_of(kill) == KnownCause(())
    assert has_another_cause(kill, [cause_of(barrier)])
    assert not has_another_cause(kill, [cause_of(kill)])
    assert has_another_cause(barrier, [cause_of(kill)])
