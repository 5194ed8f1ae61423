"""The table that closes a campaign, and the few lines that belong to it."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from powercut.campaign import Score
from powercut.campaign_report import CampaignReport, Outcome, never

_HEADINGS = (
    "runs", "steps", "kills", "power\ncuts", "nested\ncrashes", "distinct\nimages",
    "crash\npoints", "marks", "failed\nruns",
)  # fmt: skip
_VERDICTS = {
    Outcome.CLEAN: "clean: nothing acknowledged was lost, nothing torn was shown",
    Outcome.VIOLATION: "a violation was found",
    Outcome.GOAL_MISSED: "no violation, but the campaign has not seen all that it should",
    Outcome.INTERRUPTED: "interrupted: this is what was done so far",
}


def print_closing(console: Console, report: CampaignReport, seconds: float) -> None:
    """Print the table, the marks never reached, the failures, and the verdict."""
    console.print(_table(report))
    for line in _lines(report, seconds):
        console.print(line, soft_wrap=True)


def _table(report: CampaignReport) -> Table:
    several = len(report.scores) > 1
    table = Table(box=box.SIMPLE_HEAD, show_footer=several, padding=(0, 1), pad_edge=False)
    table.add_column("target", footer="together", no_wrap=True)
    rows = [_row(score) for score in report.scores]
    for index, heading in enumerate(_HEADINGS):
        footer = _footer(report)[index] if several else ""
        table.add_column(heading, footer=footer, justify="right", no_wrap=True, vertical="bottom")
    for score, row in zip(report.scores, rows, strict=True):
        table.add_row(score.target.tag, *row, style="bold red" if score.failed else None)
    return table


def _row(score: Score) -> list[str]:
    tally = score.tally
    numbers = (
        tally.runs, tally.steps, tally.kills, tally.power_cuts, tally.nested, len(tally.images)
    )  # fmt: skip
    marks = len(score.target.marks)
    return [
        *(f"{number:,}" for number in numbers),
        f"{len(tally.crash_points)}/{tally.possible_crash_points}",
        f"{marks - len(never(score))}/{marks}",
        f"{score.failed:,}",
    ]


def _footer(report: CampaignReport) -> list[str]:
    tally = report.total()
    numbers = (
        tally.runs, tally.steps, tally.kills, tally.power_cuts, tally.nested, len(tally.images)
    )  # fmt: skip
    reached = sum(len(score.tally.crash_points) for score in report.scores)
    possible = sum(score.tally.possible_crash_points for score in report.scores)
    failed = sum(score.failed for score in report.scores)
    return [
        *(f"{number:,}" for number in numbers),
        f"{reached}/{possible}",
        "",
        f"{failed:,}",
    ]


def _lines(report: CampaignReport, seconds: float) -> Iterator[str]:
    for score in report.scores:
        for mark in never(score):
            yield f"never reached  {score.target.tag}: {mark}"
    for finding in report.findings:
        reproducer = finding.reproducer
        yield f"failed  {reproducer.target}: {reproducer.broken}  powercut replay {finding.path}"
    plan = report.plan
    yield (
        f"{_VERDICTS[report.outcome]}  (disk {plan.model.name}, seed {plan.seed}, {seconds:.0f} s)"
    )
