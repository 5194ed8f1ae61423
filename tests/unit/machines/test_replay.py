"""A failure becomes a file, and the file repeats it without Hypothesis."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from powercut.fuzz.drivers.replay_driver import Verdict, record, recorded, replay, run_recorded
from powercut.fuzz.drivers.seeded import run_seeded
from powercut.fuzz.reduction.shorten import shorten
from powercut.fuzz.target_run import TargetRun
from powercut.report.reproducer import (
    FORMAT,
    BadReproducer,
    Reproducer,
    read_reproducer,
    write_reproducer,
)
from sim.choices import Chosen
from sim.errors import HarnessError
from tests.unit.machines.broken import in_place, sound, undurable


@pytest.fixture
def failing() -> Reproducer:
    """The reproducer of a file whose rename is never made durable."""
    target_run = TargetRun(undurable)
    failure = run_seeded(target_run, 1, 30)
    assert failure is not None
    return record(target_run, undurable, failure)


def test_a_failure_replays_byte_for_byte(failing: Reproducer, tmp_path: Path) -> None:
    read = read_reproducer(write_reproducer(failing, tmp_path))
    assert read == failing
    result = replay(read, undurable)
    assert (result.verdict, result.identical) == (Verdict.SAME, True)
    assert str(result).startswith("same failure at step ")


def test_a_fixed_failure_passes_or_says_where_it_diverges(failing: Reproducer) -> None:
    shortest, told = shorten(_again(failing), undurable, _failure(failing))
    result = replay(record(shortest, undurable, told), sound)
    assert result.verdict in {Verdict.PASSES, Verdict.DIVERGED}


def test_another_failure_is_called_a_different_one(failing: Reproducer) -> None:
    result = replay(replace(failing, broken="TornRecord"), undurable)
    assert result.verdict is Verdict.DIFFERENT


def test_a_replay_that_does_not_fit_says_at_which_step(failing: Reproducer) -> None:
    first = replace(failing.steps[0], chosen=(Chosen("nobody asked", 0, 1, 1),))
    result = replay(replace(failing, steps=(first, *failing.steps[1:])), undurable)
    assert result.verdict is Verdict.DIVERGED
    assert str(result).startswith("diverged at step 1: ")


def test_shortening_leaves_only_steps_that_are_needed(failing: Reproducer) -> None:
    target_run, told = shorten(_again(failing), undurable, _failure(failing))
    assert type(told).__name__ == failing.broken
    assert len(target_run.steps) <= 3
    for place in range(len(target_run.steps)):
        steps = recorded(target_run)
        fewer = (*steps[:place], *steps[place + 1 :])
        left = run_recorded(TargetRun(undurable), fewer)
        assert type(left).__name__ != failing.broken


def test_the_file_names_everything_that_a_replay_needs(failing: Reproducer, tmp_path: Path) -> None:
    path = write_reproducer(failing, tmp_path)
    plain = json.loads(path.read_text())
    assert path.name == f"{failing.fingerprint}.json"
    assert list(plain) == [
        "format", "fingerprint", "target", "model", "property", "statement", "steps", "faults",
        "trace", "versions",
    ]  # fmt: skip
    assert (plain["format"], plain["target"], plain["model"]) == (FORMAT, "undurable", "posix")
    assert set(plain["versions"]) >= {"python", "powercut", "hypothesis"}
    assert not list(tmp_path.glob("*.tmp"))


def test_the_fingerprint_tells_failures_apart(failing: Reproducer) -> None:
    target_run = TargetRun(in_place)
    failure = run_seeded(target_run, 1, 30)
    assert failure is not None
    assert record(target_run, in_place, failure).fingerprint != failing.fingerprint
    assert replace(failing, trace="", versions={}).fingerprint == failing.fingerprint


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is not a reproducer: it is not JSON, or cut off"),
        ('{"format": 1, "tar', "is not a reproducer: it is not JSON, or cut off"),
        ("[1, 2]", "is not a reproducer: it has no format number"),
        ('{"format": "1"}', "is not a reproducer: it has no format number"),
        ('{"format": 99}', "has format=99, this powercut reads up to 1"),
        ('{"format": 1}', "is a malformed reproducer: it has no 'versions'"),
        ('{"format": 1, "versions": []}', "is a malformed reproducer: versions is no object"),
    ],
    ids=["empty", "cut off", "a list", "no number", "newer", "incomplete", "malformed"],
)
def test_a_file_that_is_no_reproducer_is_refused_in_one_sentence(
    content: str, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(BadReproducer) as refused:
        read_reproducer(path)
    assert str(refused.value).startswith(f"{path} {complaint}")


def test_a_file_that_is_not_there_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadReproducer, match="No such file or directory"):
        read_reproducer(tmp_path / "none.json")


def test_a_folder_that_cannot_be_written_is_refused_in_one_sentence(
    failing: Reproducer, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(HarnessError, match="cannot write the reproducer"):
        write_reproducer(failing, blocked)


def test_a_replay_imports_nothing_of_hypothesis() -> None:
    program = (
        "import powercut.fuzz.drivers.replay_driver, crash_tests.targets.targets, sys;"
        "print([name for name in sys.modules if name.split('.')[0] == 'hypothesis'])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"


def _again(reproducer: Reproducer) -> TargetRun:
    target_run = TargetRun(undurable)
    run_recorded(target_run, reproducer.steps)
    return target_run


def _failure(reproducer: Reproducer) -> Exception:
    failure = run_recorded(TargetRun(undurable), reproducer.steps)
    assert failure is not None
    return failure
