"""A run of a target: actions as data, crashes around them, determined by its choices."""

from __future__ import annotations

from contextlib import suppress

import pytest

from faults.crash_point import CrashKind
from oracles.violation import LostAck, SilentEmpty, TornRecord, Violation
from powercut.fuzz.action import Action, Json
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.run_log import RETURN
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, Diverged, PlainChoices, ReplayChoices, SeededChoices
from sim.disk.crash.persistence import POSIX, SCC, PersistenceModel
from sim.errors import HarnessError
from sim.trace import Trace
from tests.unit.fuzz.broken import (
    CrashFree,
    UnsyncedCounter,
    in_place,
    never_ready,
    sound,
    undurable,
    unsynced,
)
from tests.unit.fuzz.project import PROJECT
from tests.unit.fuzz.target_laws import check_actions_are_json

WRITE: dict[str, Json] = {"name": "write", "arguments": {"text": "Megan"}}


def crash(
    operation: int, phase: str = "after", kind: str = "power-cut", kept: int = 0
) -> dict[str, Json]:
    return {"operation": operation, "phase": phase, "kind": kind, "kept": kept}


def crashed(*crashes: dict[str, Json]) -> Action:
    return Action("crash_and_recover", {"action": WRITE, "crashes": list(crashes)})


class Highest(Choices):
    """Chooses the last kind of action: ``crash_and_recover``."""

    def integer(self, label: str, low: int, high: int) -> int:
        return high


def seeded(make_target: MakeTarget, seed: int, model: PersistenceModel = POSIX) -> TargetRun:
    return SeededRun(make_target, model, seed, 30).run()


@pytest.mark.parametrize("tag", PROJECT.config.targets)
def test_every_proposed_action_is_plain_json_data(tag: str) -> None:
    check_actions_are_json(PROJECT.target(tag).make_target)


def test_the_plainest_run_crashes_nothing_and_draws_no_fault() -> None:
    run, plain = TargetRun(sound), PlainChoices()
    for _ in range(5):
        run.perform(run.propose(plain), plain)
    run.finish()
    assert {step.action.name for step in run.log.steps} == {"write"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)


def test_a_crash_free_target_is_neither_crashed_nor_given_faults() -> None:
    run = SeededRun(CrashFree, POSIX, 1, 60).run()
    assert run.failure is None
    assert {step.action.name for step in run.log.steps} == {"increment"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)


def test_a_power_cut_after_an_acknowledged_write_reveals_a_missing_barrier() -> None:
    run = TargetRun(undurable)
    run.perform(Action.of_plain(WRITE), PlainChoices())
    with pytest.raises(SilentEmpty):
        run.perform(crashed(crash(0)), SeededChoices(4))


@pytest.mark.parametrize(("model", "safe"), [(SCC, True), (POSIX, False)], ids=["scc", "posix"])
def test_the_persistence_model_decides_whether_a_missing_file_barrier_matters(
    model: PersistenceModel, safe: bool
) -> None:
    failures = [seeded(unsynced, seed, model).failure for seed in range(5)]
    assert all(failure is None for failure in failures) is safe


def test_a_crash_within_the_action_hits_the_planned_operation() -> None:
    run = TargetRun(sound)
    run.perform(crashed(crash(2, "before", "kill")), PlainChoices())
    (hit,) = run.log.steps[0].crashes
    assert (hit.during, hit.operation) == ("write", "Write")
    assert (hit.point.phase, hit.point.kind) == ("before", CrashKind.KILL)


def test_a_recovery_is_crashed_to_any_depth() -> None:
    run = TargetRun(sound)
    run.perform(
        crashed(crash(2, kind="kill"), crash(1), crash(1, "before"), crash(0)), PlainChoices()
    )
    assert [hit.during for hit in run.log.steps[0].crashes] == ["write", *["recovery"] * 3]
    assert (run.tally.kills, run.tally.power_cuts, run.tally.nested) == (1, 3, 2)


def test_a_crash_planned_behind_the_end_happens_after_the_action_has_returned() -> None:
    run = TargetRun(sound)
    run.perform(crashed(crash(99)), PlainChoices())
    assert run.log.steps[0].crashes[0].operation == RETURN


def test_a_fault_that_stops_recovery_is_lifted_and_recovery_starts_again() -> None:
    run = TargetRun(sound)
    run.perform(Action("fault_on", {"plan": "fsync * #1 EIO:ext4"}), PlainChoices())
    run.perform(crashed(crash(1, "before")), PlainChoices())
    assert not run.faults.on
    run.finish()


def test_a_fault_is_injected_into_one_action_and_not_into_the_next_one() -> None:
    run = TargetRun(sound)
    plan: dict[str, Json] = {"action": WRITE, "plan": "write * #1 ENOSPC"}
    run.perform(Action("with_fault", plan), PlainChoices())
    run.perform(Action.of_plain(WRITE), PlainChoices())
    first, second = run.log.steps
    assert first.outcome.startswith("refused: [Errno 28] No space left on device: ")
    assert second.outcome == "ack"
    assert run.tally.faults == 1


def test_an_action_that_is_not_possible_diverges() -> None:
    run = TargetRun(sound)
    with pytest.raises(Diverged):
        run.perform(Action("fault_off", {}), PlainChoices())
    with pytest.raises(Diverged):
        run.perform(Action("send_mail", {}), PlainChoices())


def test_target_without_a_possible_action_is_refused_in_one_sentence() -> None:
    run = TargetRun(never_ready)
    with pytest.raises(HarnessError, match=r"no action is possible; one of increment must be"):
        run.propose(Highest())


def test_recorded_choices_repeat_a_step() -> None:
    first, again = TargetRun(sound), TargetRun(sound)
    choices = SeededChoices(11)
    for _ in range(30):
        first.perform(first.propose(choices), choices)
        step = first.log.steps[-1]
        replayed = ReplayChoices(step.chosen)
        again.perform(step.action, replayed)
        assert replayed.unused == 0
    one, other = (run.crash_runner.world.disk.snapshot() for run in (first, again))
    assert one.digest() == other.digest()


def test_proposal_is_recorded_with_the_action_that_it_led_to() -> None:
    run, choices = TargetRun(sound), SeededChoices(3)
    run.propose(choices)
    run.perform(Action.of_plain(WRITE), choices)
    run.perform(run.propose(choices), choices)
    unrelated, proposed = run.log.steps
    assert unrelated.proposed == ()
    assert proposed.proposed[0].label == "action"


def test_traces_of_different_runs_differ() -> None:
    digests = []
    for seed in (1, 1, 2):
        trace = Trace()
        assert SeededRun(sound, POSIX, seed, 10).run(trace=trace).failure is None
        digests.append(trace.digest())
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("target", "allowed"),
    [(undurable, (LostAck, SilentEmpty)), (in_place, (TornRecord, SilentEmpty))],
    ids=["no directory barrier", "in place"],
)
def test_seeded_runs_find_a_broken_write(
    target: MakeTarget, allowed: tuple[type[Exception], ...]
) -> None:
    failures = [seeded(target, seed).failure for seed in range(5)]
    found = [failure for failure in failures if failure is not None]
    assert found
    assert isinstance(found[0], allowed)


def test_lost_operations_have_their_lines_also_after_a_kill() -> None:
    """The kill leaves the operations unsynced, and the power cut in the recovery loses them."""
    run = TargetRun(UnsyncedCounter, with_places=True)
    increment: dict[str, Json] = {"name": "increment", "arguments": {}}
    crashes: list[Json] = [crash(0, kind="kill"), crash(0)]
    with suppress(Violation):
        run.perform(
            Action("crash_and_recover", {"action": increment, "crashes": crashes}),
            Highest(),
        )
    killed, cut = run.log.steps[0].crashes
    assert killed.disk is not None
    assert cut.disk is not None
    assert sorted(killed.places) == list(range(1, killed.disk.operations + 1))
    lost = {micro.operation for micro in cut.disk.unsynced().micros}
    assert lost
    assert max(lost) <= 0
    assert lost <= set(cut.places)
    assert {place.file for place in cut.places.values()} == {"tests/unit/fuzz/broken.py"}


def test_a_change_of_the_disk_is_counted_without_a_crash() -> None:
    run = TargetRun(UnsyncedCounter)
    assert not run.tally.changed
    run.perform(Action("increment", {}), PlainChoices())
    assert run.tally.changed
