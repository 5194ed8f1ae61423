"""The workload of the whole runtime is safe under every model, and detects missing barriers."""

from __future__ import annotations

import gc

import pytest

from crash_tests.workloads.runtime import runtime, runtime_pending, runtime_recorded
from crash_tests.workloads.workload import Workload
from oracles.history import History, Known
from oracles.recording.turn_records import check_turn_records
from oracles.violation import OutOfSync
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.fuzz.memory import settled
from sim.disk.cache.operation import Operation, Sync, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from system.agents.view import RuntimeView
from system.runtime import Runtime
from tests.sample import in_the_gate

SMALL = Limits(states_per_point=4, samples=2, engine=Engine.BRUTE)

teams = pytest.mark.parametrize(
    "workload", [runtime, runtime_pending], ids=["runtime", "runtime-pending"]
)
workloads = pytest.mark.parametrize(
    "workload",
    [runtime, runtime_pending, runtime_recorded],
    ids=["runtime", "runtime-pending", "runtime-recorded"],
)


class LosesBarriers:
    """Makes barriers on paths with this ending succeed without an effect."""

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def before(self, operation: Operation, number: int) -> Operation:
        del number
        if isinstance(operation, Sync) and operation.path.endswith(self.ending):
            return operation.failed(SyncFailure.LYING)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        del operation, number

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        del path, inode, offset
        return data


@teams
def test_team_completes_its_work(workload: Workload) -> None:
    disk = Disk()
    history = History(lambda: disk.operations)
    workload.run(Process(disk), history)
    logs = [content for path, content in disk.snapshot().files().items() if path.endswith(".jsonl")]
    assert [log.count(b'"event":"agent.terminated"') for log in logs] == [1, 1, 0]
    assert sum(log.count(b'"event":"turn.complete"') for log in logs) == 5


def test_one_turn_is_recorded() -> None:
    disk = Disk()
    runtime_recorded.run(Process(disk), History(lambda: disk.operations))
    files = {path[1:]: content for path, content in disk.snapshot().files().items()}
    assert check_turn_records(files) == 1


@pytest.mark.parametrize("model", in_the_gate(MODELS, lambda name: name == "xfs"))
@workloads
def test_the_runtime_is_safe_under_every_persistence_model(workload: Workload, model: str) -> None:
    found = explore(workload.run, workload.check, model, SMALL)
    assert found.safe, found.failures[0].violation
    assert found.states > 100


@pytest.mark.stress
@pytest.mark.parametrize("workload", [runtime, runtime_recorded], ids=["team", "recorded"])
def test_a_crash_of_the_recovery_is_safe_as_well(workload: Workload) -> None:
    found = explore(workload.run, workload.check, "ext4-journal", Limits(nested=1))
    assert found.safe, found.failures[0].violation
    assert found.exhaustive
    assert found.states > 1000


@pytest.mark.parametrize(
    ("workload", "ending", "model"),
    [
        (runtime, "events.jsonl", "ext4-journal"),
        (runtime, "session.json.tmp.747ea2ea", "xfs"),
        pytest.param(runtime, "/agents", "posix", marks=pytest.mark.stress),
        (runtime_recorded, "/records", "btrfs"),
        (runtime_recorded, "00000001.pack.tmp.983aa92f", "xfs"),
    ],
)
def test_a_barrier_that_does_nothing_makes_it_unsafe(
    workload: Workload, ending: str, model: str
) -> None:

    def work(process: Process, ack: History) -> None:
        process.disk.interposer = LosesBarriers(ending)
        workload.run(process, ack)

    assert not explore(work, workload.check, model, SMALL).safe


@workloads
def test_a_view_that_differs_from_the_logs_is_a_violation(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_another_turn(runtime: Runtime) -> RuntimeView:
        first, *others = seen(runtime).agents
        return RuntimeView((first._replace(turns=first.turns + 1), *others), ())

    disk, check, seen = Disk(), workload.check, Runtime.view
    history = History(lambda: disk.operations)
    workload.run(Process(disk), history)
    known = history.known(len(history.entries))
    assert check is not None
    check(Process(Disk(disk.snapshot())), known)
    monkeypatch.setattr(Runtime, "view", with_another_turn)
    with pytest.raises(OutOfSync, match="the view shows turns that the log of the agent lacks"):
        check(Process(Disk(disk.snapshot())), known)


@workloads
def test_observation_of_the_future_is_a_violation(workload: Workload) -> None:
    def check(process: Process, known: Known) -> None:
        assert workload.check is not None
        workload.check(process, Known(known.acknowledged, (*known.in_flight, *later)))

    later: list[object] = []
    assert explore(workload.run, check, "scc", SMALL).safe
    disk = Disk()
    history = History(lambda: disk.operations)
    workload.run(Process(disk), history)
    later.append(history.entries[-1].value)
    assert not explore(workload.run, check, "scc", SMALL).safe


@workloads
def test_a_lifetime_leaves_nothing_for_the_garbage_collector(workload: Workload) -> None:
    """Memory freed by reference counts is warm for the next state, and needs no collection."""
    judge = workload.check
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
        limits = Limits(states_per_point=1, samples=1, engine=Engine.BRUTE)
        explore(workload.run, check, "scc", limits)
    assert len(left) > 100
    assert not any(left)
