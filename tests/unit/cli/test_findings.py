"""No finding is lost: it is printed and written when it is found, however the campaign ends."""

from __future__ import annotations

import io
import json
import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from powercut.cli import findings
from powercut.cli.exit_code import ExitCode
from powercut.cli.findings import Findings
from powercut.fuzz.campaign.campaign import Plan, Score, batches, run_batch
from powercut.fuzz.reproducer import FAILURES
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.target_run import TargetRun
from powercut.report.cause import Searched
from sim.disk.crash.persistence import POSIX
from sim.loop.sandbox import SANDBOX
from tests.meta.source_tree import run_python
from tests.unit.cli.command_line import CARELESS, json_of, powercut, write_project

PLAN = Plan((TargetEntry("saved-file", CARELESS),), POSIX, 0, 10, examples=20)
QUICK = "import sys; sys.modules['hypothesis'] = None; "
"""Without Hypothesis, failures are reduced quickly."""
FAILING = ("run", "saved-file", "--examples", "6", "--steps", "10", "-n", "1")


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, saved_file=CARELESS)


@pytest.fixture(scope="module")
def score() -> Score:
    """The score of a batch in which several runs have failed."""
    return run_batch(next(batches(PLAN)))


@contextmanager
def full_disk() -> Iterator[None]:
    """Refuse every write to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def findings_of(plan: Plan) -> tuple[Findings, io.StringIO]:
    printed = io.StringIO()
    return Findings(plan, FAILURES, Console(file=printed, width=200)), printed


# -- while the campaign goes on ----------------------------------------------------------


def test_failure_is_printed_and_written_when_it_is_found(score: Score) -> None:
    reported, printed = findings_of(PLAN)
    reported.report(score)
    found = [line for line in printed.getvalue().splitlines() if line.startswith("found  ")]
    assert [line.split(": ")[1] for line in found] == sorted(kind.broken for kind in score.failing)
    assert len(list(FAILURES.glob("*.json"))) == len(found)
    reported.report(score)
    assert printed.getvalue().count("found  ") == len(found)


def test_reduced_reproducer_takes_the_place_of_the_one_that_was_found(score: Score) -> None:
    reported, _ = findings_of(PLAN)
    reported.report(score)
    found, interrupted = reported.reduce([score], hurry=False)
    assert not interrupted
    assert {finding.path for finding in found} == set(FAILURES.glob("*.json"))
    assert max(len(finding.run.log.steps) for finding in found) <= 3


def test_a_replay_that_is_printed_works_after_the_campaign(score: Score) -> None:
    """A reproducer that a smaller one replaces is said to be kept only until then."""
    reported, printed = findings_of(PLAN)
    reported.report(score)
    kept = re.findall(r"^  kept    (.*) until it is reduced$", printed.getvalue(), re.MULTILINE)
    assert {Path(each) for each in kept} == set(FAILURES.glob("*.json"))
    found, _ = reported.reduce([score], hurry=False)
    named = re.findall(r"powercut replay (\S+)", printed.getvalue())
    assert {Path(each) for each in named} == {finding.path for finding in found}


def test_failures_are_grouped_by_cause() -> None:
    plan = replace(PLAN, targets=(TargetEntry("unsynced", "tests.unit.fuzz.broken:unsynced"),))
    reported, printed = findings_of(plan)
    found, _ = reported.reduce([run_batch(next(batches(plan)))], hurry=False)
    assert len(found) > 1
    assert printed.getvalue().count("step\n") == 1
    assert printed.getvalue().count("same cause") == len(found) - 1
    assert "  cause   no fsync of /data/state.json.tmp between write at " in printed.getvalue()
    assert "  repair  with that fsync, none of 13 states fails\n" in printed.getvalue()


def test_of_two_missing_barriers_each_finding_names_its_own_first(score: Score) -> None:
    reported, printed = findings_of(PLAN)
    reported.reduce([score], hurry=False)
    lines = printed.getvalue().splitlines()
    lost = [line.split()[2].strip(",") for line in lines if line.startswith("          lost ")]
    causes = [line.split()[4] for line in lines if line.startswith("  cause   no fsync of ")]
    others = [line.split()[4] for line in lines if line.startswith("  also    no fsync of ")]
    assert lost == ["/data/state.json", "of"]
    assert causes == ["/data", "/data/state.json"] == others[::-1]
    assert "  repair  with these 2 fsyncs, none of 8 states fails\n" in printed.getvalue()


def causes_of(name: str) -> list[str]:
    """Return the missing barriers that a campaign of a target names, in the order of its report."""
    entry = TargetEntry("two", f"tests.unit.fuzz.two_files:{name}")
    plan = replace(PLAN, targets=(entry,), examples=40)
    score = Score(entry)
    for batch in batches(plan):
        score.add(run_batch(batch))
    reported, printed = findings_of(plan)
    reported.reduce([score], hurry=False)
    lines = printed.getvalue().splitlines()
    return [line.partition(" at ")[0] for line in lines if line.startswith("  cause   ")]


def test_two_causes_of_one_kind_of_failure_are_two_findings() -> None:
    causes = causes_of("TwoFiles")
    assert "  cause   no fsync of /log between write" in causes
    assert "  cause   no fsync of / between rename" in causes
    assert len(set(causes)) == len(causes)


def test_what_is_lost_on_real_file_systems_comes_before_what_posix_loses() -> None:
    first, *_, last = causes_of("NamesAndBytes")
    assert first == "  cause   no fsync of /log between write"
    assert last == "  cause   no fsync of / between create"


def test_run_that_loses_the_name_alone_does_not_hide_the_bytes_that_every_model_loses() -> None:
    assert causes_of("Unsynced") == [
        "  cause   no fsync of /log between write",
        "  cause   no fsync of / between create",
    ]


def test_target_that_depends_on_more_than_its_choices_is_named(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TargetRun, "fail", lambda *_: None)
    reported, printed = findings_of(PLAN)
    reported.report(score)
    assert printed.getvalue().startswith("not repeatable  saved-file: run ")
    assert "; the target depends on more than its choices, such as data" in printed.getvalue()
    assert reported.reduce([score], hurry=False) == ([], False)


# -- the time budget ---------------------------------------------------------------------


def test_reductions_share_the_time_that_is_left(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def reduced(run: TargetRun, _seconds: float, wall_seconds: float) -> TargetRun:
        given.append(wall_seconds)
        return run

    monkeypatch.setattr(findings, "reduced", reduced)
    monkeypatch.setattr(findings, "searched", lambda finding, **_: Searched(finding))
    failures = len(score.failing)
    monkeypatch.setattr(findings, "time", SimpleNamespace(monotonic=lambda: 100.0))
    findings_of(replace(PLAN, deadline=160.0))[0].reduce([score], hurry=False)
    assert given == [60 / left for left in range(failures, 0, -1)]
    del given[:]
    findings_of(replace(PLAN, deadline=100.0))[0].reduce([score], hurry=False)
    assert given == []
    findings_of(PLAN)[0].reduce([score], hurry=False)
    assert given == [inf] * failures


def test_reduction_that_meets_a_run_without_end_keeps_the_failure_as_it_was_found(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()

    def reduced(*_: object) -> TargetRun:
        while True:
            next(numbers)

    monkeypatch.setattr(findings, "reduced", reduced)
    reported, printed = findings_of(replace(PLAN, deadline=time.monotonic() + 1))
    found, interrupted = reported.reduce([score], hurry=False)
    assert not interrupted
    assert len(found) == len(score.failing)
    assert "FAILED  " in printed.getvalue()


def test_runs_end_earlier_if_there_is_a_failure_to_reduce() -> None:
    plan = replace(PLAN, examples=1000, deadline=1e12, reduction_seconds=10)
    failed = iter((False, True, True))
    jobs = batches(plan, lambda: next(failed))
    assert [next(jobs).plan.deadline for _ in range(3)] == [1e12, 1e12 - 10, 1e12 - 10]


# -- a campaign that ends early ----------------------------------------------------------


def test_full_disk_prints_the_reproducer_that_it_refuses() -> None:
    Path("out.json").write_text("of an earlier campaign", encoding="ascii")
    with full_disk():
        result = powercut(*FAILING, "--json", "out.json")
    assert result.exit_code == ExitCode.VIOLATION
    assert "cannot write --json out.json: File too large" in result.stderr
    assert Path("out.json").read_text(encoding="ascii") == "of an earlier campaign"
    assert list(FAILURES.iterdir()) == []
    lines = result.stdout.splitlines()
    place = max(number for number, line in enumerate(lines) if "File too large" in line)
    assert "FAILED  " in result.stdout
    assert "powercut replay" not in result.stdout
    assert "until it is reduced" not in result.stdout
    assert "  reproducer not kept\n" in result.stdout
    Path("saved.json").write_text(lines[place + 1], encoding="ascii")
    replayed = powercut("replay", "saved.json")
    assert replayed.exit_code == ExitCode.VIOLATION
    assert "byte for byte" in replayed.stdout


def test_failure_of_the_harness_is_shown_below_the_findings(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[Score]:
        yield score
        raise ValueError("a wheel came off")

    monkeypatch.setattr("powercut.cli.run.scores", broken)
    result = powercut("run", "saved-file", "--json", "-")
    assert result.exit_code == ExitCode.VIOLATION
    assert "FAILED  " in result.stderr
    assert "ValueError: a wheel came off" in result.stderr
    assert json_of(result)["failures"]


def test_an_interrupt_inside_of_a_simulated_world_is_an_interrupt(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[Score]:
        yield score
        # The signal came before the first statement of the block.
        SANDBOX.__enter__()
        raise KeyboardInterrupt

    monkeypatch.setattr("powercut.cli.run.scores", interrupted)
    result = powercut("run", "saved-file", "--json", "-")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "FAILED  " in result.stderr
    assert json_of(result)["failures"]


def test_an_interrupt_while_a_step_enters_the_simulated_world_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        SANDBOX.__enter__()
        raise KeyboardInterrupt

    monkeypatch.setattr(TargetRun, "perform", interrupted)
    result = powercut(*FAILING)
    assert result.exit_code == ExitCode.INTERRUPTED, result.output
    assert result.stdout.splitlines()[-1].startswith("interrupted: these are the results so far")


@pytest.mark.parametrize(
    ("target", "program", "code", "last"),
    [
        ("killing_its_worker", "", ExitCode.VIOLATION, "a violation was found"),
        ("terminating_the_campaign", "", ExitCode.INTERRUPTED, "interrupted: these are the"),
        (
            "interrupting_all",
            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); ",
            ExitCode.VIOLATION,
            "a violation was found",
        ),
    ],
    ids=["dead worker", "SIGTERM", "SIGINT that the parent ignores"],
)
def test_findings_survive_a_signal(target: str, program: str, code: ExitCode, last: str) -> None:
    write_project(Path(), saved_file=f"tests.unit.cli.disturbed:{target}")
    ran = run_python(
        "-c", f"{QUICK}{program}from powercut.cli.main import main; main()",
        *("run", "saved-file", "--examples", "120", "--steps", "10", "-n", "2"),
        *("--seconds", "60", "--json", "out.json"),
        cwd=Path.cwd(),
    )  # fmt: skip
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "FAILED  " in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith(last)
    failures = json.loads(Path("out.json").read_text("ascii"))["failures"]
    assert all(Path(failure["reproducer"]).exists() for failure in failures)
    died = "Error: a worker process ended before its job was done (SIGKILL); "
    assert ran.stderr.startswith(died if target == "killing_its_worker" else "")
    assert ran.stderr.count("\n") == (target == "killing_its_worker")


@pytest.mark.parametrize("command", ["run", "replay"])
def test_error_in_the_search_for_a_cause_hides_no_failure(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    powercut(*FAILING)
    arguments = FAILING if command == "run" else ("replay", str(min(FAILURES.glob("*.json"))))

    def fail(_unsafe: object) -> object:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("powercut.explorer.diagnosis._Search", fail)
    result = powercut(*arguments)
    assert result.exit_code == ExitCode.INTERNAL_ERROR
    assert "FAILED  " in result.stdout
    assert "the search for a missing fsync failed" in result.stdout
    assert ("a violation was found" if command == "run" else "same failure") in result.stdout
    assert "ZeroDivisionError: a bug\n\npowercut itself failed while" in result.stderr


@pytest.mark.parametrize("broken", ["reduced", "has_another_cause"])
def test_error_in_a_reduction_hides_no_failure(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> object:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(findings, broken, fail)
    result = powercut(*FAILING)
    assert result.exit_code == ExitCode.INTERNAL_ERROR
    assert "FAILED  " in result.stdout
    assert "a violation was found" in result.stdout
    assert "ZeroDivisionError: a bug\n\npowercut itself failed while it explained" in result.stderr
    assert [*FAILURES.glob("*.json")]
