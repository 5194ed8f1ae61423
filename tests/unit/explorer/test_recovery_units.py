"""Recovery units: their states add up, and a unit that is not independent has no own tree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.explore import explore, judged
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.recovery_unit import recovery_unit
from powercut.explorer.two_phases import TwoPhases
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError

LAZY = Limits(engine=Engine.LAZY)
BRUTE = Limits(engine=Engine.BRUTE)
FILES = ("a", "b", "c")
_MODULE = __name__


def _logs(process: Process, ack: History) -> None:
    """Write a record of three sectors to each of three files, without a barrier."""
    for name in FILES:
        descriptor = process.open(f"/{name}", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, name.encode() * 1500 + b".")
        process.close(descriptor)
    ack("all")


def _record_in(process: Process, name: str) -> str:
    """Return the record of a file, or the reason why it has none."""
    if not process.access(f"/{name}", os.F_OK):
        return "missing"
    descriptor = process.open(f"/{name}", os.O_RDONLY)
    content = process.read(descriptor, 1 << 20)
    process.close(descriptor)
    return "whole" if content == name.encode() * 1500 + b"." else "torn"


def _all_in_units(process: Process) -> list[str]:
    return [recovery_unit(process, _record_in, name) for name in FILES]


def _all_within(process: Process) -> list[str]:
    return [_record_in(process, name) for name in FILES]


def _not_mixed(records: list[str], known: Known) -> None:
    if known.acknowledged and sorted(records) == ["missing", "torn", "whole"]:
        raise Violation("the files are in three states", records=records)


def _explored(
    check: Callable[[Process], list[str]], model: str, limits: Limits = LAZY
) -> Exploration:
    return explore(_logs, TwoPhases(check, _not_mixed), model, limits)


def test_states_of_units_add_up_and_find_the_same_violations() -> None:
    within, units = _explored(_all_within, "ext4-ordered"), _explored(_all_in_units, "ext4-ordered")
    assert (units.how, units.decided, units.within) == (within.how, within.decided, ())
    assert units.states < within.states / 4
    assert {str(each.violation) for each in units.failures} == {
        str(each.violation) for each in within.failures
    }


@pytest.mark.parametrize("model", ["scc", "xfs", "btrfs"])
def test_units_have_the_verdict_of_the_crash_images(model: str) -> None:
    units, brute = _explored(_all_in_units, model), _explored(_all_in_units, model, BRUTE)
    assert (units.safe, units.is_lazy) == (brute.safe, True)


def test_units_have_the_same_result_in_several_processes() -> None:
    recorded = record(_logs, MODELS["ext4-writeback"], Image.empty())
    check = TwoPhases(_all_in_units, _not_mixed)
    one, three = (
        judged(recorded, check, [MODELS["ext4-writeback"]], LAZY, deciding=number)["ext4-writeback"]
        for number in (1, 3)
    )
    assert (one.states, one.decided, one.failed) == (three.states, three.decided, three.failed)
    assert [each.crashes for each in one.failures] == [each.crashes for each in three.failures]


def _reads_its_own_record(process: Process, known: Known) -> None:
    """Complete a file, and read it again."""
    if _record_in(process, "a") != "missing":
        descriptor = process.open("/a", os.O_WRONLY)
        process.write(descriptor, b"a" * 1500 + b".")
        process.close(descriptor)
    found = recovery_unit(process, _record_in, "a")
    if found == "torn" or (known.acknowledged and found == "read without the write"):
        raise LostAck("a")


def test_a_unit_that_reads_what_the_check_has_written_is_executed_within_it() -> None:
    found = explore(_logs, _reads_its_own_record, "ext4-ordered", LAZY)
    assert (found.safe, found.is_lazy, found.within) == (True, True, (f"{_MODULE}:_record_in",))
    again = explore(_logs, _reads_its_own_record, "ext4-ordered", Limits(1, nested=1))
    assert again.safe


def _repairs(process: Process, name: str) -> str:
    found = _record_in(process, name)
    if found == "torn":
        process.unlink(f"/{name}")
        found = "missing"
    return found


def _no_torn_record(process: Process, _known: Known) -> None:
    assert "torn" not in [recovery_unit(process, _repairs, name) for name in FILES]
    assert "torn" not in _all_within(process)


def test_a_unit_that_writes_is_executed_within_the_check() -> None:
    found = explore(_logs, _no_torn_record, "ext4-ordered", LAZY)
    assert (found.safe, found.is_lazy, found.within) == (True, True, (f"{_MODULE}:_repairs",))


def _opens(process: Process, name: str) -> None:
    process.close(process.open(f"/{name}", os.O_RDONLY))


def _is_there_or_not(process: Process, known: Known) -> None:
    try:
        recovery_unit(process, _opens, "a")
    except FileNotFoundError:
        if known.acknowledged:
            raise LostAck("a") from None


def test_the_exception_of_a_unit_is_raised_in_the_check() -> None:
    found = explore(_logs, _is_there_or_not, "posix", LAZY)
    assert {type(each.violation) for each in found.failures} == {LostAck}


def test_a_unit_has_no_units_of_its_own() -> None:
    found = explore(_logs, _unit_in_a_unit, "ext4-ordered", LAZY)
    assert (found.safe, found.is_lazy, found.within) == (True, True, ())


def _both(process: Process) -> list[str]:
    return [recovery_unit(process, _record_in, name) for name in FILES[:2]]


def _unit_in_a_unit(process: Process, _known: Known) -> None:
    assert len(recovery_unit(process, _both)) == 2


def test_a_function_that_no_module_has_is_refused() -> None:
    def local(process: Process) -> None:
        process.listdir("/")

    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, local)

    with pytest.raises(HarnessError, match=re.escape("<locals>.local is no function of a module")):
        explore(_logs, check, "scc", LAZY)


def _connection(process: Process, *_names: object) -> Callable[[], list[str]]:
    return lambda: process.listdir("/")


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (["a"], r"an argument of the recovery unit \S+:_connection is an unhashable type: 'list'"),
        ("a", r"the recovery unit \S+:_connection returned a value that cannot be copied"),
    ],
)
def test_values_that_are_not_plain_are_refused(argument: object, text: str) -> None:
    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, _connection, argument)

    with pytest.raises(HarnessError, match=text):
        explore(_logs, check, "scc", LAZY)


_calls: list[int] = []


def _forgetful(process: Process, name: str) -> str:
    """Read another file at each call."""
    _calls.append(1)
    return _record_in(process, f"{name}{len(_calls)}")


def test_a_unit_with_state_is_refused_with_both_questions() -> None:
    def check(process: Process, _known: Known) -> None:
        recovery_unit(process, _forgetful, "a")

    with pytest.raises(HarnessError, match=r"it asked for entry 'a1' .* and now for entry 'a\d+'"):
        explore(_logs, check, "scc", LAZY)
