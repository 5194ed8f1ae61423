"""The whole runtime, explored: safe under every persistence model; and a hole is seen."""

from __future__ import annotations

import gc

import pytest

from crash_tests.workloads.runtime import SCENARIOS
from crash_tests.workloads.workload import Scenario
from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Limits
from powercut.fuzz.memory import settled
from sim.disk.cache.operation import FailedSync, Operation, Sync, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk

SMALL = Limits(states_per_point=4, samples=2)

scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=[one.tag for one in SCENARIOS])


class LosesBarriers:
    """Lets every barrier on paths that end like this do nothing, and says it was done."""

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def before(self, operation: Operation, number: int) -> Operation:
        del number
        if isinstance(operation, Sync) and operation.path.endswith(self.ending):
            return FailedSync(*operation, SyncFailure.LYING)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        del operation, number

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        del path, inode, offset
        return data


@scenarios
def test_the_team_comes_to_its_end(scenario: Scenario) -> None:
    disk = Disk()
    history = History(lambda: disk.operations)
    scenario.workload(Process(disk), history)
    logs = [content for path, content in disk.snapshot().files().items() if path.endswith(".jsonl")]
    assert [log.count(b'"event":"agent.terminated"') for log in logs] == [1, 1, 0]
    assert sum(log.count(b'"event":"turn.complete"') for log in logs) == 5


@scenarios
@pytest.mark.parametrize("model", MODELS)
def test_the_runtime_is_safe_under_every_persistence_model(scenario: Scenario, model: str) -> None:
    found = explore(scenario.workload, scenario.check, model, SMALL)
    assert found.safe, found.failures[0].violation
    assert found.states > 100


def test_a_crash_of_the_recovery_is_safe_as_well() -> None:
    scenario = SCENARIOS[0]
    found = explore(scenario.workload, scenario.check, "ext4-journal", Limits(nested=1))
    assert found.safe, found.failures[0].violation
    assert found.exhaustive
    assert found.states > 1000


@pytest.mark.parametrize(
    ("ending", "model"),
    [("events.jsonl", "btrfs"), ("session.json.tmp.747ea2ea", "btrfs"), ("/agents", "posix")],
)
def test_a_barrier_that_does_nothing_makes_it_unsafe(ending: str, model: str) -> None:
    scenario = SCENARIOS[0]

    def workload(disk: Process, ack: History) -> None:
        disk.disk.interposer = LosesBarriers(ending)
        scenario.workload(disk, ack)

    assert not explore(workload, scenario.check, model, SMALL).safe


@scenarios
def test_one_more_fact_than_there_was_is_a_violation(scenario: Scenario) -> None:
    def check(disk: Process, known: Known) -> None:
        assert scenario.check is not None
        scenario.check(disk, Known(known.acknowledged, (*known.in_flight, *later)))

    later: list[object] = []
    assert explore(scenario.workload, check, "scc", SMALL).safe
    disk = Disk()
    history = History(lambda: disk.operations)
    scenario.workload(Process(disk), history)
    later.append(history.entries[-1].value)
    assert not explore(scenario.workload, check, "scc", SMALL).safe


@scenarios
def test_a_lifetime_leaves_nothing_for_the_garbage_collector(scenario: Scenario) -> None:
    """What is freed at once is warm when the next state takes it, and needs no collection."""
    judge = scenario.check
    assert judge is not None
    left: list[int] = []

    def check(process: Process, known: Known) -> None:
        gc.collect()
        gc.disable()
        try:
            judge(process, known)
            left.append(gc.collect())
        finally:
            gc.enable()

    with settled():
        explore(scenario.workload, check, "posix", Limits(states_per_point=1, samples=1))
    assert len(left) > 100
    assert not any(left)
