"""The checks of the workloads detect losses and inventions."""

from __future__ import annotations

import pytest

from oracles.history import History
from oracles.violation import Violation
from powercut.registry import WorkloadEntry
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.registry import REGISTRY

WORKLOADS = [REGISTRY.workload(tag) for tag in REGISTRY.config.workloads]
checked = pytest.mark.parametrize(
    "workload",
    [pytest.param(workload, id=workload.tag) for workload in WORKLOADS if workload.check],
)


def history_of(workload: WorkloadEntry, disk: Disk) -> History:
    """Return the history of the workload when it runs on ``disk`` without a crash."""
    history = History(lambda: disk.operations)
    workload.run(Process(disk), history)
    return history


@checked
def test_empty_disk_is_a_violation_once_anything_was_acknowledged(workload: WorkloadEntry) -> None:
    assert workload.check is not None
    history = history_of(workload, Disk())
    first = next(number for number, entry in enumerate(history.entries, 1) if entry.acknowledged)
    for entries in range(first):
        workload.check(Process(Disk()), history.known(entries))
    for entries in range(first, len(history.entries) + 1):
        with pytest.raises(Violation):
            workload.check(Process(Disk()), history.known(entries))


@checked
def test_effect_that_was_not_attempted_yet_is_a_violation(workload: WorkloadEntry) -> None:
    assert workload.check is not None
    disk = Disk()
    history = history_of(workload, disk)
    workload.check(Process(Disk(disk.snapshot())), history.known(len(history.entries)))
    with pytest.raises(Violation):
        workload.check(Process(Disk(disk.snapshot())), history.known(0))
