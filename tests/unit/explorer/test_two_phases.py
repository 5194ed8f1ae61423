"""Checks in two phases: their failures, and the number of recoveries and of judgements."""

from __future__ import annotations

import os
from typing import Any

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.errors import HarnessError

_CONTENTS = [b"%d" % number * 5 for number in range(3)]


def _replaced(process: Process, ack: History) -> None:
    """Replace a file three times, without a barrier."""
    for number in range(3):
        descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"%d" % number * 5)
        process.close(descriptor)
        process.replace("/new", "/file")
        ack(number)


def _read(process: Process, path: str) -> bytes:
    descriptor = process.open(path, os.O_RDONLY)
    content = process.read(descriptor, 1 << 20)
    process.close(descriptor)
    return content


def _recovered(process: Process) -> dict[str, bytes]:
    return {name: _read(process, f"/{name}") for name in process.listdir("/")}


def _compared(files: dict[str, bytes], known: Known) -> None:
    if known.acknowledged and files.get("file", b"")[:5] not in _CONTENTS:
        raise LostAck("file", files=files)


def _whole(process: Process, known: Known) -> None:
    _compared(_recovered(process), known)


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
def test_a_disk_is_recovered_once_for_all_acknowledgements(engine: Engine) -> None:
    recoveries: list[int] = []
    judged: list[tuple[dict[str, bytes], Known]] = []

    def recover(process: Process) -> dict[str, bytes]:
        recoveries.append(1)
        return _recovered(process)

    def judge(files: dict[str, bytes], known: Known) -> None:
        judged.append((files, known))
        _compared(files, known)

    limits = Limits(engine=engine)
    two = explore(_replaced, TwoPhases(recover, judge), "ext4-ordered", limits)
    executions = len(recoveries)
    one = explore(_replaced, _whole, "ext4-ordered", limits)
    assert not one.safe
    # The lazy engine executes the check again for each failure.
    assert executions - len(two.failures) * two.is_lazy < one.states
    assert two.is_lazy or all(judged.count(each) == 1 for each in judged)
    assert {(each.crashes, str(each.violation)) for each in two.failures} == {
        (each.crashes, str(each.violation)) for each in one.failures
    }


def test_a_recovery_that_fails_is_a_failure() -> None:
    found = explore(
        _replaced,
        TwoPhases(lambda process: _read(process, "/file"), lambda *_: None),
        "scc",
        Limits(engine=Engine.LAZY),
    )
    assert (found.is_lazy, found.safe) == (True, False)


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
def test_a_result_that_cannot_be_copied_is_refused(engine: Engine) -> None:
    check = TwoPhases(lambda process: lambda: process, lambda *_: None)
    with pytest.raises(HarnessError, match="recover returned a value that cannot be copied"):
        explore(_replaced, check, "scc", Limits(engine=engine))


def test_two_phases_are_made_with_the_type_of_the_result() -> None:
    check = TwoPhases[dict[str, bytes]](_recovered, _compared)
    assert not explore(_replaced, check, limits=Limits(engine=Engine.BRUTE)).safe


def test_phase_of_other_parameters_is_refused_with_its_line() -> None:
    takes_two: Any = _whole
    takes_one: Any = _recovered
    line = _whole.__code__.co_firstlineno
    place = f"tests/unit/explorer/test_two_phases.py:{line}, _whole"
    with pytest.raises(HarnessError) as refused:
        TwoPhases(takes_two, _compared)
    assert str(refused.value) == (
        f"recover of TwoPhases takes (process, known), and must take (process); see {place}"
    )
    with pytest.raises(HarnessError, match=r"judge of TwoPhases takes .*must take \(result, known"):
        TwoPhases(_recovered, takes_one)
