"""Causes are compared by the barriers that their recoveries miss; models by their verdicts."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from oracles.history import History
from powercut.explorer.cause import Cause, Diagnosis, NoGap, is_cause_of
from powercut.explorer.event import events_of
from powercut.explorer.explore import judged
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX, SCC


def _write(process: Process, ack: History) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"new")
    process.fsync(descriptor)
    process.rename("/f", "/g")
    ack({"/g": b"new"})


@pytest.fixture(name="found", scope="module")
def _found() -> Exploration:
    return judged(record(_write, POSIX, Image.empty()), None, [SCC])["scc"]


def _missing(found: Exploration, *gaps: Gap | NoGap) -> Cause:
    """Return a cause whose recovery, which is the workload here, misses the barriers ``gaps``."""
    causes = tuple(Cause(each, {}, {}) for each in gaps)
    return Cause(NoGap.NOT_FOUND, {}, {}, Diagnosis({"scc": found}, causes, {}))


def test_a_recovery_is_the_cause_of_another_one_that_misses_no_other_barrier(
    found: Exploration,
) -> None:
    create, write, fsync, rename, _ = events_of(found.workload)
    short, long = Gap("/f", write, fsync), Gap("/f", write, rename)
    name = Gap("/", create, rename)
    assert is_cause_of(_missing(found, name, short), _missing(found, long))
    assert is_cause_of(_missing(found, name, long), _missing(found, long))
    assert is_cause_of(_missing(found, long), _missing(found, long, name))
    assert not is_cause_of(_missing(found, long), _missing(found, short))
    assert not is_cause_of(_missing(found, short), _missing(found, long, name))
    assert not is_cause_of(_missing(found, name), _missing(found, long))


def test_a_recovery_without_a_missing_barrier_has_another_cause(found: Exploration) -> None:
    _, write, fsync, *_ = events_of(found.workload)
    missing, none = _missing(found, Gap("/f", write, fsync)), _missing(found, NoGap.NOT_ATOMIC)
    assert is_cause_of(none, none)
    assert not is_cause_of(missing, none)
    assert not is_cause_of(none, missing)
    assert not is_cause_of(missing, replace(none, recovery=None))
    assert not is_cause_of(replace(missing, recovery=None), missing)


def test_each_model_is_safe_unsafe_or_unfinished(found: Exploration) -> None:
    unsafe, safe = replace(found, failed=1), replace(found, failed=0)
    explorations = {
        "unsafe": unsafe,
        "unsafe, stopped": replace(unsafe, stopped=True),
        "safe": safe,
        "unfinished": replace(safe, stopped=True),
    }
    diagnosis = Diagnosis(explorations, (), {})
    assert diagnosis.safe_models == ("safe",)
    assert diagnosis.unfinished_models == ("unfinished",)
    assert diagnosis.unsafe_models == ("unsafe", "unsafe, stopped")
