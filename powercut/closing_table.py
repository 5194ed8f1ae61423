"""The table that closes a campaign, and the few lines that belong to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from powercut.campaign import Score
from powercut.campaign_report import CampaignReport, Outcome, never
from powercut.tally import Tally

_HEADINGS = (
    "runs", "steps", "kills", "power\ncuts", "nested\ncrashes", "distinct\nimages",
    "crash\npoints", "marks", "failed\nruns",
)  # fmt: skip
_WIDE = 100
"""Columns of a console that has room for gaps, and for commas in numbers."""

_VERDICTS = {
    Outcome.CLEAN: "clean: nothing acknowledged was lost, nothing torn was shown",
    Outcome.VIOLATION: "a violation was found",
    Outcome.GOAL_MISSED: "no violation, but the campaign has not seen all that it should",
    Outcome.INTERRUPTED: "interrupted: this is what was done so far",
}


def print_closing(console: Console, report: CampaignReport, seconds: float) -> None:
    """Print the table, the marks never reached, the failures, and the verdict."""
    console.print(_table(report, wide=console.width >= _WIDE))
    for line in _lines(report, seconds):
        console.print(line, soft_wrap=True)


def _table(report: CampaignReport, *, wide: bool) -> Table:
    """Return the table; one that is not ``wide`` fits into 80 columns."""
    together = ["together", *_numbers(report.scores, wide=wide)]
    footers = iter(together if len(report.scores) > 1 else [""] * len(together))
    table = Table(
        box=box.SIMPLE_HEAD, show_footer=len(report.scores) > 1, padding=(0, int(wide)),
        pad_edge=False, collapse_padding=not wide,
    )  # fmt: skip
    table.add_column("target", footer=next(footers), no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(
            heading, footer=next(footers), justify="right", no_wrap=True, vertical="bottom"
        )
    for score in report.scores:
        row = _numbers([score], wide=wide)
        table.add_row(score.target.tag, *row, style="bold red" if score.failed else None)
    return table


def _numbers(scores: Sequence[Score], *, wide: bool) -> list[str]:
    tally = Tally()
    for score in scores:
        tally.add(score.tally)
    counts = (
        tally.runs, tally.steps, tally.kills, tally.power_cuts, tally.nested, len(tally.images)
    )  # fmt: skip
    reached = sum(len(score.tally.crash_points) for score in scores)
    possible = sum(score.tally.possible_crash_points for score in scores)
    expected = sum(len(score.target.marks) for score in scores)
    missing = sum(len(never(score)) for score in scores)
    return [
        *(f"{number:,}" if wide else str(number) for number in counts),
        f"{reached}/{possible}",
        f"{expected - missing}/{expected}",
        str(sum(score.failed for score in scores)),
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
