"""``powercut run`` counts its runs, repeats them for an equal seed, and ends with a verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oracles.marks import KILLED, TORN
from powercut.cli.exit_code import ExitCode
from powercut.fuzz.campaign.campaign import Failing, Plan, Score, batches, run_batch
from powercut.fuzz.reproducer import FAILURES
from powercut.fuzz.run_log import FailureKind
from powercut.report.campaign import CampaignReport, CampaignVerdict, Goal
from sim.disk.crash.persistence import POSIX
from tests.unit.cli.command_line import CARELESS, json_of, powercut, write_project
from tests.unit.fuzz.project import PROJECT

TARGETS = PROJECT.config.targets
SMALL = ("--examples", "3", "--steps", "10")
FAILING = ("--examples", "6", "--steps", "10")
ALONE = ("-n", "1")
SHAPE = {
    "schema": int,
    "verdict": str,
    "model": str,
    "seed": int,
    "runs": int,
    "steps": int,
    "kills": int,
    "power_cuts": int,
    "nested": int,
    "faults": int,
    "distinct_images": int,
    "distinct_images_exact": bool,
    "chance_of_new_image": float,
    "distinct_schedules": int,
    "crash_points": {"reached": int, "total": int},
    "pairs": {"reached": int, "total": int},
    "marks": {"reached": int, "total": int, "never": list},
    "failures": list,
    "targets": dict,
}


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)


@pytest.fixture
def planted(tmp_path: Path) -> None:
    write_project(tmp_path, saved_file=CARELESS)


def shape_of(value: Any, like: Any) -> Any:
    if isinstance(like, dict):
        return {name: shape_of(member, like[name]) for name, member in value.items()}
    return type(value)


def test_clean_campaign_closes_with_a_table_and_leaves_nothing_behind() -> None:
    result = powercut("run", *SMALL, *ALONE)
    assert result.exit_code == ExitCode.CLEAN
    for tag in TARGETS:
        assert re.search(rf"^ {tag} +3 +30 ", result.stdout, re.MULTILINE), result.stdout
    assert result.stdout.splitlines()[-1].startswith("clean: ")
    assert list(Path().iterdir()) == [Path("pyproject.toml")]


def test_colour_and_progress_are_for_terminals_only() -> None:
    result = powercut("run", "saved-file", *SMALL, *ALONE)
    assert "\x1b" not in result.output
    assert "\r" not in result.output


def test_json_has_the_documented_members() -> None:
    found = json_of(powercut("run", *SMALL, *ALONE, "--json", "-"))
    assert shape_of(found, SHAPE) == SHAPE
    assert found["schema"] == 1
    assert found["verdict"] == "clean"
    targets = len(TARGETS)
    assert (found["runs"], found["steps"]) == (3 * targets, 30 * targets)
    assert set(found["targets"]) == set(TARGETS)


def test_json_to_a_file_leaves_the_table_on_stdout() -> None:
    result = powercut("run", "saved-file", *SMALL, *ALONE, "--json", "out.json")
    assert "saved-file" in result.stdout
    assert json.loads(Path("out.json").read_text("ascii"))["runs"] == 3


def test_equal_campaigns_count_alike_in_any_number_of_processes() -> None:
    def counts(*options: str) -> dict[str, Any]:
        return json_of(powercut("run", "saved-file", *SMALL, "--json", "-", *options))

    alone = counts("-n", "1")
    assert counts("-n", "2") == alone
    assert counts("-n", "1", "--seed", "1") != alone


def test_images_of_two_processes_count_once() -> None:
    plan = Plan((PROJECT.target("saved-file"),), POSIX, 0, 10, examples=2)
    (batch,) = batches(plan)
    once, again = run_batch(batch), run_batch(batch)
    images, schedules = once.tally.images.count, once.tally.schedules.count
    once.add(again)
    assert (once.tally.images.count, once.tally.schedules.count) == (images, schedules)
    assert once.tally.runs == 4


def test_shortest_failing_run_of_each_kind_is_the_one_to_shrink() -> None:
    score, other = (Score(PROJECT.target("saved-file")) for _ in range(2))
    lost, garbage = FailureKind("LostAck", "gone"), FailureKind("Garbage", "zeroes")
    score.fail(lost, Failing(steps=3, number=8))
    score.fail(lost, Failing(steps=7, number=1))
    other.fail(lost, Failing(steps=4, number=5))
    other.fail(garbage, Failing(steps=9, number=9))
    score.add(other)
    assert score.failing == {lost: Failing(3, 8), garbage: Failing(9, 9)}


def test_four_kinds_of_failure_of_one_property_are_kept() -> None:
    score = Score(PROJECT.target("saved-file"))
    for number in (5, 2, 6, 1, 4, 3):
        score.fail(FailureKind("LostAck", f"in way {number}"), Failing(number, 0))
    assert sorted(failing.steps for failing in score.failing.values()) == [1, 2, 3, 4]


def test_time_that_is_up_still_gives_every_target_a_run() -> None:
    plan = Plan(PROJECT.all_targets(), POSIX, 0, 10, examples=1000, deadline=0.0)
    scores = [run_batch(batch) for batch in batches(plan)]
    assert [score.tally.runs for score in scores] == [1] * len(TARGETS)


def test_time_that_is_up_ends_a_run_between_two_steps() -> None:
    run = Plan(PROJECT.all_targets(), POSIX, 0, 10).run(PROJECT.target("saved-file"), 0)
    left = iter((False, False, False, True))
    done = run.run(lambda _run: next(left))
    assert (len(done.log.steps), done.failure) == (3, None)


def test_seconds_bound_a_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that advances by 10 ms whenever it is read.
    clock = SimpleNamespace(monotonic=partial(next, count(0, 0.01)))
    monkeypatch.setattr("powercut.cli.run.time", clock)
    monkeypatch.setattr("powercut.fuzz.campaign.campaign.time", clock)
    found = json_of(powercut("run", "saved-file", *ALONE, "--seconds", "2", "--json", "-"))
    assert found["runs"] > 1
    # The first run of a target is completed without a look at the clock.
    assert 100 < found["steps"] < 200 + 30


def test_several_targets_may_be_named() -> None:
    found = json_of(
        powercut("run", "frequent-file", "saved-file", "frequent-file", *SMALL, "--json", "-")
    )
    assert list(found["targets"]) == ["frequent-file", "saved-file"]
    assert found["runs"] == 6


def test_lengths_of_runs_vary_unless_they_are_given() -> None:
    def steps(*options: str) -> int:
        found = json_of(
            powercut("run", "saved-file", *ALONE, "--examples", "20", "--json", "-", *options)
        )
        assert isinstance(found["steps"], int)
        return found["steps"]

    assert steps("--steps", "30") == 20 * 30
    assert steps() != 20 * 30


def test_target_of_twice_as_many_steps_gets_twice_as_many_runs_of_every_round() -> None:
    plan = Plan(PROJECT.all_targets(), POSIX, 0, 30, examples=1000)
    one_round = dict.fromkeys(TARGETS, 10) | {"frequent-file": 20}
    jobs = batches(plan)
    for number in range(3):
        batch_of = {batch.target.tag: batch for batch in islice(jobs, len(TARGETS))}
        runs = {tag: (batch.first, batch.end) for tag, batch in batch_of.items()}
        assert runs == {
            tag: (number * size, (number + 1) * size) for tag, size in one_round.items()
        }


def test_fault_plan_is_on_when_each_run_begins() -> None:
    found = json_of(
        powercut(
            "run", "saved-file", *ALONE, "--examples", "4", "--steps", "1",
            "--faults", "write * #1+ ENOSPC", "--json", "-",
        )
    )  # fmt: skip
    assert found["verdict"] == "clean"
    assert found["steps"] == 8
    assert found["faults"] > 0


def test_fault_plan_is_not_on_for_a_crash_free_target() -> None:
    found = json_of(
        powercut(
            "run", "crash-free", "saved-file", *ALONE, "--examples", "1", "--steps", "1",
            "--faults", "write * #1+ ENOSPC", "--json", "-",
        )
    )  # fmt: skip
    assert found["verdict"] == "clean"
    assert {tag: counts["steps"] for tag, counts in found["targets"].items()} == {
        "crash-free": 1, "saved-file": 2,
    }  # fmt: skip


@pytest.mark.usefixtures("planted")
def test_failure_is_reduced_reported_and_written() -> None:
    result = powercut("run", "saved-file", *FAILING, *ALONE, "--json", "out.json")
    assert result.exit_code == ExitCode.VIOLATION
    found = json.loads(Path("out.json").read_text("ascii"))
    assert found["verdict"] == "violation"
    assert found["failures"]
    for failure in found["failures"]:
        path = Path(failure["reproducer"])
        assert path.parent == FAILURES
        recorded = json.loads(path.read_text("ascii"))
        assert len(recorded["steps"]) <= 2
        assert (recorded["property"], recorded["fingerprint"], recorded["target"]) == (
            failure["property"], failure["fingerprint"], "saved-file",
        )  # fmt: skip
        assert f"FAILED  {failure['property']}  on posix" in result.stdout
        assert f"powercut replay {path}" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("a violation was found")


@pytest.mark.usefixtures("planted")
def test_failures_go_below_the_root_that_was_named() -> None:
    powercut("run", "saved-file", *FAILING, *ALONE, "--root", "elsewhere")
    assert list(Path("elsewhere", FAILURES).glob("*.json"))
    assert not FAILURES.exists()


def test_nightly_campaign_that_misses_a_mark_says_so_with_its_exit_code() -> None:
    few = ("--examples", "1", "--steps", "1")
    result = powercut("run", "saved-file", *ALONE, "--profile", "nightly", *few)
    assert result.exit_code == ExitCode.GOAL_MISSED
    assert "never reached  saved-file: a write was torn" in result.stdout
    assert "required marks were not reached: run it longer" in result.stdout
    assert powercut("run", "saved-file", *ALONE, *few).exit_code == ExitCode.CLEAN


@pytest.mark.parametrize(
    ("goal", "rare", "verdict"),
    [
        (Goal.NONE, (), CampaignVerdict.CLEAN),
        (Goal.USUAL, (TORN,), CampaignVerdict.CLEAN),
        (Goal.USUAL, (KILLED,), CampaignVerdict.GOAL_MISSED),
        (Goal.ALL, (TORN,), CampaignVerdict.GOAL_MISSED),
    ],
)
def test_only_a_long_campaign_must_reach_what_is_rare(
    goal: Goal, rare: tuple[str, ...], verdict: CampaignVerdict
) -> None:
    target = replace(PROJECT.target("saved-file"), marks=(TORN,), rare=rare)
    plan = Plan((target,), POSIX, 0, 30)
    assert CampaignReport(plan, [Score(target)], [], goal=goal).verdict is verdict


def test_mark_that_a_model_rules_out_is_not_asked_for() -> None:
    result = powercut("run", "saved-file", *SMALL, *ALONE, "--model", "scc")
    assert "a write was torn" not in result.stdout


def _interrupted(*_: object) -> Iterator[object]:
    yield run_batch(next(batches(Plan(PROJECT.all_targets(), POSIX, 0, 10, examples=2))))
    raise KeyboardInterrupt


def test_interrupted_campaign_reports_its_results_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powercut.cli.run.scores", _interrupted)
    result = powercut("run", "--json", "out.json")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "interrupted: these are the results so far" in result.stdout
    found = json.loads(Path("out.json").read_text("ascii"))
    assert (found["verdict"], found["runs"]) == ("interrupted", 2)


def test_failure_of_the_harness_asks_to_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[object]:
        raise ValueError("a wheel came off")

    monkeypatch.setattr("powercut.cli.run.scores", broken)
    result = powercut("run")
    assert result.exit_code == ExitCode.INTERNAL_ERROR
    assert "a wheel came off" in result.stderr
    assert "please report" in result.stderr


def test_interrupt_anywhere_else_ends_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("powercut.cli.explore.record", interrupted)
    result = powercut("explore", "tests.unit.explorer.workloads:save_twice")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert result.stderr == "interrupted\n"


def test_a_campaign_without_a_crash_is_not_clean() -> None:
    result = powercut(
        "run", "tests.unit.fuzz.broken:Idle", *ALONE, "--examples", "1", "--steps", "1"
    )
    assert result.exit_code == ExitCode.USAGE
    assert "the campaign had no crash, so nothing was tested" in result.stderr


def test_a_campaign_of_targets_that_are_never_crashed_is_clean() -> None:
    result = powercut("run", "crash-free", *ALONE, "--examples", "1", "--steps", "1")
    assert result.exit_code == ExitCode.CLEAN
