"""The diagnosis of a correct program without one barrier names that barrier, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from powercut.explorer.cause import Diagnosis
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.limits import Limits
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from sim.disk.crash.persistence import MODELS, POSIX
from tests.controls.publish_programs import PROGRAMS, START
from tests.controls.test_publish_controls import NEEDED

# The barriers whose name does not say what is synced.
SYNCED = {
    "fsync the unnamed file": "an unnamed file in /d",
    "fsync after 1": "/log",
    "fsync after 2": "/log",
    "O_DSYNC": "/log",
    "fdatasync after 1": "/log",
    "fdatasync after 2": "/log",
}


def _needed() -> Iterator[tuple[str, str]]:
    for name, barriers in NEEDED.items():
        yield from ((name, barrier) for barrier, models in barriers.items() if models)


def _diagnosed(name: str, without: str) -> Diagnosis:
    program = PROGRAMS[name]
    recorded = record(program.without(without), POSIX, START)
    limits = Limits(states_per_point=100_000, nested=program.nested)
    return diagnose(judged(recorded, program.check, MODELS.values(), limits))


@pytest.mark.parametrize(("name", "barrier"), tuple(_needed()))
def test_the_missing_barrier_is_the_one_that_was_left_out(name: str, barrier: str) -> None:
    found = _diagnosed(name, barrier)
    (cause,) = found.causes
    assert isinstance(cause.gap, Gap)
    assert cause.gap.path == SYNCED.get(barrier) or cause.gap.path == barrier.split()[1]
    assert frozenset(cause.failures) == frozenset(found.unsafe_models) == NEEDED[name][barrier]
    assert list(found.repaired) == list(found.unsafe_models)
    assert all(each.safe and each.exhaustive for each in found.repaired.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_program_has_no_cause(name: str) -> None:
    found = _diagnosed(name, "")
    assert found.causes == ()
    assert found.safe_models == tuple(MODELS)
