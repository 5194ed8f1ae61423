"""The table and the lines at the end of a campaign."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from faults.crash_point import Phase
from oracles.marks import KILLED, QUARANTINED, TORN
from oracles.violation import LostAck
from powercut.fuzz.campaign.campaign import Failing, Plan, Score
from powercut.fuzz.reproducer import Finding, Reproducer
from powercut.fuzz.run_log import FailureKind
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.target_run import TargetRun
from powercut.report.campaign import CampaignReport, Goal
from powercut.report.closing_table import print_closing
from sim.disk.crash.persistence import POSIX
from tests.unit.fuzz.saved_file import saved_file

MARKS = (KILLED, TORN, QUARANTINED)
FILE, LOG = (TargetEntry(tag, "unused:unused", MARKS) for tag in ("saved-file", "event-log-framed"))


def tally(images: int, *reached: str) -> Tally:
    found = Tally(runs=1234, steps=37020, kills=6543, power_cuts=13210, nested=2987, faults=77)
    for number in range(images):
        found.images.add(f"{number:032x}")
        found.images.add(f"{number // 2:032x}")
    for number in range(1200):
        found.schedules.add(f"schedule {number}")
    found.operations = {("write", "Write"), ("write", "Sync")}
    found.crash_points = {("write", "Write", phase) for phase in Phase}
    for mark in reached:
        found.marks.reach(mark)
    return found


def page(
    *scores: Score,
    findings: tuple[Finding, ...] = (),
    interrupted: bool = False,
    width: int = 100,
    goal: Goal = Goal.NONE,
) -> str:
    plan = Plan((FILE, LOG), POSIX, 7, 30, examples=1234)
    output = io.StringIO()
    console = Console(file=output, width=width, markup=False, highlight=False)
    report = CampaignReport(plan, scores, findings, interrupted, goal)
    print_closing(console, report, 60.2, 61.4)
    lines = (line.rstrip() for line in output.getvalue().splitlines())
    return "\n".join(lines)


def test_clean_campaign_reads_as_it_did(snapshot: SnapshotAssertion) -> None:
    scores = (Score(FILE, tally(9000, *MARKS)), Score(LOG, tally(12000, KILLED)))
    assert page(*scores) == snapshot


def test_many_marks_of_several_targets_are_counted_unless_they_are_required() -> None:
    marks = tuple(f"state {number}" for number in range(9))
    many = TargetEntry("many", "unused:unused", (KILLED, *marks), rare=marks)

    def printed(*targets: TargetEntry) -> list[str]:
        lines = page(*(Score(target, tally(10)) for target in targets), goal=Goal.USUAL)
        return [line for line in lines.splitlines() if line.startswith("never reached")]

    required = "never reached  many: a process was killed (required)"
    assert printed(many) == [required, *(f"never reached  many: {mark}" for mark in marks)]
    assert printed(many, FILE)[:1] == [required]
    assert printed(many, FILE)[-1] == (
        "never reached  9 marks that are not required; "
        "`powercut run TARGET` names those of one target"
    )


def test_campaign_of_one_target_has_no_sum(snapshot: SnapshotAssertion) -> None:
    assert page(Score(FILE, tally(10, *MARKS)), interrupted=True) == snapshot


def test_campaign_with_a_failure_reads_as_it_did(snapshot: SnapshotAssertion) -> None:
    score = Score(FILE, tally(10, *MARKS), 17, {FailureKind("LostAck", "gone"): Failing(3, 12)})
    run = TargetRun(saved_file)
    run.fail(LostAck("gone"))
    reproducer = Reproducer(run.log, "", {})
    path = Path(".powercut/failures") / f"{reproducer.fingerprint}.json"
    finding = Finding(run, reproducer, path)
    assert page(score, Score(LOG, tally(10, *MARKS)), findings=(finding,)) == snapshot


def test_long_name_of_a_target_cuts_off_no_heading(snapshot: SnapshotAssertion) -> None:
    target = TargetEntry("my_application.crash_tests.storage:StoreTarget", "", MARKS)
    assert page(Score(target, tally(10, *MARKS)), width=80) == snapshot


def test_narrow_terminal_gets_the_whole_table_too() -> None:
    lines = page(Score(FILE, tally(123456, *MARKS)), Score(LOG, tally(7, *MARKS)), width=80)
    table = [line for line in lines.splitlines() if line.startswith((" saved", " together"))]
    assert [line.split() for line in table] == [
        ["saved-file", "1234", "37020", "6543", "13210", "2987", "~124995", "3/7", "3/3", "0"],
        ["together", "2468", "74040", "13086", "26420", "5974", "~124995", "6/14", "6/6", "0"],
    ]
