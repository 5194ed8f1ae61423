"""The run: actions as data, crashes around them, and a run that its choices determine."""

from __future__ import annotations

import json

import pytest

from crash_tests.targets.event_log import framed
from crash_tests.targets.lifecycle import lifecycle
from crash_tests.targets.targets import TARGETS
from faults.crash_point import CrashKind
from oracles.violation import LostAck, SilentEmpty, TornRecord
from powercut.fuzz.action import Action, Json
from powercut.fuzz.drivers.seeded import run_seeded
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Diverged, PlainChoices, ReplayChoices, SeededChoices
from sim.disk.crash.persistence import POSIX, SCC, PersistenceModel
from sim.trace import Trace
from tests.unit.machines.broken import in_place, sound, undurable, unsynced

WRITE: dict[str, Json] = {"name": "write", "arguments": {"text": "Megan"}}


def crash(
    operation: int, phase: str = "after", kind: str = "power-cut", kept: int = 0
) -> dict[str, Json]:
    return {"operation": operation, "phase": phase, "kind": kind, "kept": kept}


def crashed(*crashes: dict[str, Json]) -> Action:
    return Action("crash_and_recover", {"action": WRITE, "crashes": list(crashes)})


def test_every_proposed_action_is_plain_json_data() -> None:
    choices = SeededChoices(1)
    for target in TARGETS.values():
        run = TargetRun(target)
        for _ in range(30):
            action = run.propose(choices)
            assert Action.of_plain(json.loads(json.dumps(action.plain()))) == action
            run.perform(action, choices)


def test_the_plainest_run_crashes_nothing_and_draws_no_fault() -> None:
    run, plain = TargetRun(framed), PlainChoices()
    for _ in range(5):
        run.perform(run.propose(plain), plain)
    run.finish()
    assert {step.action.name for step in run.steps} == {"append"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)


def test_a_calm_subject_is_neither_crashed_nor_given_faults() -> None:
    run = TargetRun(lifecycle)
    assert run_seeded(run, 1, 60) is None
    assert {step.action.name for step in run.steps} == {
        "create",
        "spawn",
        "turn",
        "terminate",
    }
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)


def test_a_power_cut_after_an_acknowledged_write_shows_a_missing_barrier() -> None:
    run = TargetRun(undurable)
    run.perform(Action.of_plain(WRITE), PlainChoices())
    with pytest.raises(SilentEmpty):
        run.perform(crashed(crash(0)), SeededChoices(4))


@pytest.mark.parametrize(("model", "safe"), [(SCC, True), (POSIX, False)], ids=["scc", "posix"])
def test_the_persistence_model_decides_whether_a_missing_file_barrier_matters(
    model: PersistenceModel, safe: bool
) -> None:
    failures = [run_seeded(TargetRun(unsynced, model), seed, 30) for seed in range(5)]
    assert all(failure is None for failure in failures) is safe


def test_a_crash_within_the_action_meets_the_operation_that_was_asked_for() -> None:
    run = TargetRun(sound)
    run.perform(crashed(crash(2, "before", "kill")), PlainChoices())
    (met,) = run.steps[0].crashes
    assert (met.during, met.operation_name) == ("write", "Write")
    assert (met.point.phase, met.point.kind) == ("before", CrashKind.KILL)


def test_a_recovery_is_crashed_to_any_depth() -> None:
    run = TargetRun(sound)
    run.perform(
        crashed(crash(2, kind="kill"), crash(1), crash(1, "before"), crash(0)), PlainChoices()
    )
    assert [met.during for met in run.steps[0].crashes] == ["write", *["recovery"] * 3]
    assert (run.tally.kills, run.tally.power_cuts, run.tally.nested) == (
        1,
        3,
        2,
    )


def test_a_planned_crash_behind_the_end_comes_when_the_action_has_returned() -> None:
    run = TargetRun(sound)
    run.perform(crashed(crash(99)), PlainChoices())
    assert run.steps[0].crashes[0].operation_name == "return"


def test_a_fault_that_keeps_recovery_from_ending_is_lifted_and_recovery_starts_again() -> None:
    run = TargetRun(sound)
    run.perform(Action("fault_on", {"plan": "fsync * #1 EIO:ext4"}), PlainChoices())
    run.perform(crashed(crash(1, "before")), PlainChoices())
    assert not run.faults.on
    run.finish()


def test_an_action_meets_its_fault_and_the_next_one_does_not() -> None:
    run = TargetRun(sound)
    plan: dict[str, Json] = {"action": WRITE, "plan": "write * #1 ENOSPC"}
    run.perform(Action("with_fault", plan), PlainChoices())
    run.perform(Action.of_plain(WRITE), PlainChoices())
    assert run.steps[0].outcome.startswith("refused: data/state.json: no space left")
    assert run.steps[1].outcome == "ack"
    assert run.tally.faults == 1


def test_an_action_that_is_not_possible_diverges() -> None:
    run = TargetRun(sound)
    with pytest.raises(Diverged):
        run.perform(Action("fault_off", {}), PlainChoices())
    with pytest.raises(Diverged):
        run.perform(Action("send_mail", {}), PlainChoices())


def test_what_performing_a_step_asked_for_repeats_it() -> None:
    first, again = TargetRun(sound), TargetRun(sound)
    choices = SeededChoices(11)
    for _ in range(30):
        first.perform(first.propose(choices), choices)
        step = first.steps[-1]
        replayed = ReplayChoices(step.chosen)
        again.perform(step.action, replayed)
        replayed.finish()
    one, other = (run.crash_runner.world.disk.snapshot() for run in (first, again))
    assert one.digest() == other.digest()


def test_a_trace_tells_a_run_that_differs() -> None:
    digests = []
    for seed in (1, 1, 2):
        trace = Trace()
        assert run_seeded(TargetRun(sound, trace=trace), seed, 10) is None
        digests.append(trace.digest())
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("target", "allowed"),
    [(undurable, (LostAck, SilentEmpty)), (in_place, (TornRecord, SilentEmpty))],
    ids=["no directory barrier", "in place"],
)
def test_a_broken_write_is_found_by_seeded_runs(
    target: MakeTarget, allowed: tuple[type[Exception], ...]
) -> None:
    failures = [run_seeded(TargetRun(target), seed, 30) for seed in range(5)]
    found = [failure for failure in failures if failure is not None]
    assert found
    assert isinstance(found[0], allowed)
