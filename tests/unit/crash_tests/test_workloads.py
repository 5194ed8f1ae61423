"""The checks of the built-in scenarios can tell a loss."""

from __future__ import annotations

import pytest

from crash_tests.workloads.catalogue import SCENARIOS
from oracles.history import History
from oracles.violation import Violation
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

CHECKED = [tag for tag, scenario in SCENARIOS.items() if scenario.check is not None]


def history_of(tag: str, disk: Disk) -> History:
    """What the workload says when it runs on ``disk`` without a crash."""
    history = History(lambda: disk.operations)
    SCENARIOS[tag].workload(Process(disk), history)
    return history


@pytest.mark.parametrize("tag", CHECKED)
def test_empty_disk_is_a_violation_once_anything_was_acknowledged(tag: str) -> None:
    check = SCENARIOS[tag].check
    assert check is not None
    history = history_of(tag, Disk())
    first = next(number for number, entry in enumerate(history.entries, 1) if entry.acknowledged)
    for said in range(first):
        check(Process(Disk()), history.known(said))
    for said in range(first, len(history.entries) + 1):
        with pytest.raises(Violation):
            check(Process(Disk()), history.known(said))


@pytest.mark.parametrize("tag", CHECKED)
def test_what_nobody_has_said_yet_is_a_violation(tag: str) -> None:
    check = SCENARIOS[tag].check
    assert check is not None
    disk = Disk()
    history = history_of(tag, disk)
    check(Process(Disk(disk.snapshot())), history.known(len(history.entries)))
    with pytest.raises(Violation):
        check(Process(Disk(disk.snapshot())), history.known(0))
