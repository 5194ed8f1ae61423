"""A failure becomes a file, and the file repeats it without Hypothesis."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from cProfile import Profile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from powercut.fuzz.drivers.replay import Verdict, replay
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.reduction import reduced
from powercut.fuzz.reproducer import (
    FORMAT,
    BadReproducer,
    Reproducer,
    read_reproducer,
    record,
    write_reproducer,
)
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Chosen
from sim.disk.crash.persistence import POSIX
from sim.errors import HarnessError
from tests.meta.source_tree import run_python
from tests.unit.fuzz.broken import in_place, sound, undurable


def failed_run(make_target: MakeTarget) -> TargetRun:
    run = SeededRun(make_target, POSIX, 1, 30).run()
    assert run.failure is not None
    return run


@pytest.fixture
def failing() -> Reproducer:
    """The reproducer of a file whose rename is never made durable."""
    return record(failed_run(undurable))


def test_a_failure_replays_byte_for_byte(failing: Reproducer, tmp_path: Path) -> None:
    read = read_reproducer(write_reproducer(failing, tmp_path))
    assert read == failing
    result = replay(read, undurable)
    assert (result.verdict, result.identical) == (Verdict.SAME, True)
    assert str(result).startswith("same failure at step ")
    assert result.run.log == failing.log


def test_a_failure_replays_in_a_profiler_as_well(failing: Reproducer) -> None:
    with Profile() as profiler:
        result = replay(failing, undurable)
        shown = str(result)
    assert result.verdict is Verdict.SAME, shown
    assert type(result).__str__.__code__ in {entry.code for entry in profiler.getstats()}


def test_failure_whose_missing_barrier_was_added_passes_now() -> None:
    result = replay(record(reduced(failed_run(undurable))), sound)
    assert result.verdict is Verdict.PASSES
    # The power cut has nothing to lose any more, and does not ask for the survivors.
    assert str(result) == (
        "passes now: 2 steps and the final checks (2 recorded answers were not asked for)"
    )


def test_another_failure_is_called_a_different_one(failing: Reproducer) -> None:
    result = replay(replace(failing, log=replace(failing.log, broken="TornRecord")), undurable)
    assert result.verdict is Verdict.DIFFERENT


def test_a_replay_that_does_not_fit_names_the_step(failing: Reproducer) -> None:
    log = deepcopy(failing.log)
    number, step = next((k, step) for k, step in enumerate(log.steps, 1) if step.chosen)
    step.chosen = [Chosen("colour", 0, 1, 1)]
    result = replay(replace(failing, log=log), undurable)
    assert result.verdict is Verdict.DIVERGED
    assert str(result).startswith(f"diverged at step {number}: ")


def test_the_file_contains_everything_that_a_replay_needs(
    failing: Reproducer, tmp_path: Path
) -> None:
    path = write_reproducer(failing, tmp_path)
    plain = json.loads(path.read_text())
    assert path.name == f"{failing.fingerprint}.json"
    assert list(plain) == [
        "format", "fingerprint", "target", "model", "property", "statement", "steps", "trace",
        "versions",
    ]  # fmt: skip
    assert (plain["format"], plain["target"], plain["model"]) == (FORMAT, "undurable", "posix")
    assert set(plain["versions"]) >= {"python", "powercut", "hypothesis"}
    assert not list(tmp_path.glob("*.tmp"))


def test_fingerprints_of_different_failures_differ(failing: Reproducer) -> None:
    assert record(failed_run(in_place)).fingerprint != failing.fingerprint
    assert replace(failing, trace="", versions={}).fingerprint == failing.fingerprint


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is not a reproducer: it is not JSON, or cut off"),
        ('{"format": 1, "tar', "is not a reproducer: it is not JSON, or cut off"),
        ("[" * 100_000, "is not a reproducer: it is not JSON, or cut off"),
        ("[1, 2]", "is not a reproducer: it has no format number"),
        ('{"format": "1"}', "is not a reproducer: it has no format number"),
        ('{"format": 99}', "has format=99, this powercut reads up to 1"),
        ('{"format": 1}', "is a malformed reproducer: it has no 'versions'"),
        ('{"format": 1, "versions": []}', "is a malformed reproducer: versions is not an object"),
    ],
    ids=["empty", "cut off", "nested", "a list", "no number", "newer", "incomplete", "malformed"],
)
def test_a_file_that_is_no_reproducer_is_refused_in_one_sentence(
    content: str, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    path.write_text(content)
    with pytest.raises(BadReproducer) as refused:
        read_reproducer(path)
    assert str(refused.value).startswith(f"{path} {complaint}")


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda step: step["choices"].append("colour 9 of 0..7"), "not a choice: 'colour 9 of"),
        (lambda step: step["choices"].append(["colour", 0, 7, 3]), "not a choice: ['colour'"),
        (lambda step: step["crashes"].append("12 before kill"), "a crash is not an object: '12"),
        (lambda step: step.pop("outcome"), "it has no 'outcome'"),
        (lambda step: step.update(action={"name": "write"}), "not an action: {'name': 'write'}"),
    ],
    ids=["out of range", "no choice", "no crash", "no outcome", "no action"],
)
def test_a_malformed_step_is_named_by_its_number(
    spoil: Callable[[Any], object], complaint: str, failing: Reproducer, tmp_path: Path
) -> None:
    path = write_reproducer(failing, tmp_path)
    plain = json.loads(path.read_text())
    spoil(plain["steps"][1])
    path.write_text(json.dumps(plain))
    with pytest.raises(BadReproducer) as refused:
        read_reproducer(path)
    assert str(refused.value).startswith(f"{path} is a malformed reproducer: step 2: {complaint}")


def test_a_missing_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadReproducer, match="No such file or directory"):
        read_reproducer(tmp_path / "none.json")


def test_a_folder_that_cannot_be_written_is_refused_in_one_sentence(
    failing: Reproducer, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(HarnessError, match="cannot write the reproducer"):
        write_reproducer(failing, blocked)


def test_swarm_and_replay_import_nothing_of_hypothesis() -> None:
    program = (
        "import powercut.fuzz.campaign.campaign, powercut.fuzz.drivers.replay;"
        "import powercut.fuzz.reduction, powercut.registry, sys;"
        "print([name for name in sys.modules if name.split('.')[0] == 'hypothesis'])"
    )
    assert run_python("-c", program).stdout.strip() == "[]"
