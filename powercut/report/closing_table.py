"""The table at the end of a campaign, and the lines below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from powercut.counted import counted
from powercut.fuzz.campaign.campaign import Score
from powercut.fuzz.tally import Tally
from powercut.report.campaign import (
    CampaignReport,
    CampaignVerdict,
    is_blind,
    missed,
    never,
    pairs_of,
    points_of,
)
from powercut.report.cause import by_cause

_HEADINGS = (
    "runs", "steps", "kills", "power\ncuts", "nested\ncrashes", "distinct\nimages",
    "crash\npoints", "marks", "failed\nruns",
)  # fmt: skip
_WIDE = 100
"""Columns of a console with room for gaps between columns and commas in numbers."""

_MOST_MARKS = 8
"""Marks of several targets above which those that are not required are only counted."""

_BLIND = (
    "the checks pass also if every power cut loses all that was acknowledged; check_recovered must "
    "compare the state with what the actions have stored"
)

_VERDICTS = {
    CampaignVerdict.CLEAN: "clean: no violation was found",
    CampaignVerdict.VIOLATION: "a violation was found",
    CampaignVerdict.GOAL_MISSED: (
        "no violation was found, but required marks were not reached: run it longer"
    ),
    CampaignVerdict.UNENDED: (
        "no violation was found, but a run did not end by itself: see the line that it executed"
    ),
    CampaignVerdict.INTERRUPTED: "interrupted: these are the results so far",
    CampaignVerdict.INCOMPLETE: "powercut itself failed: these are the results so far",
}


def print_closing(
    console: Console, report: CampaignReport, fuzzing_seconds: float, seconds: float
) -> None:
    """Print the table, the counts of different runs, missing marks, failures and the verdict.

    ``fuzzing_seconds`` are the seconds of the runs, ``seconds`` include the reductions.
    """
    console.print(_table(report, wide=console.width >= _WIDE))
    for line in (*_count_lines(report, fuzzing_seconds), *_lines(report, seconds)):
        console.print(line, soft_wrap=True)


def _table(report: CampaignReport, *, wide: bool) -> Table:
    """Return the table; one that is not ``wide`` fits into 80 columns."""
    together = ["together", *_numbers(report.scores, wide=wide)]
    footers = iter(together if len(report.scores) > 1 else [""] * len(together))
    table = Table(
        box=box.SIMPLE_HEAD, show_footer=len(report.scores) > 1, padding=(0, int(wide)),
        pad_edge=False, collapse_padding=not wide,
    )  # fmt: skip
    # Only this column may be folded, so that no heading or number is cut off.
    table.add_column("target", footer=next(footers), overflow="fold")
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
        tally.runs, tally.steps, tally.kills, tally.power_cuts, tally.nested
    )  # fmt: skip
    expected = sum(len(score.target.marks) for score in scores)
    missing = sum(len(never(score)) for score in scores)
    return [
        *(f"{number:,}" if wide else str(number) for number in counts),
        str(tally.images) if wide else str(tally.images).replace(",", ""),
        str(points_of(scores)),
        f"{expected - missing}/{expected}",
        str(sum(score.failed for score in scores)),
    ]


def _count_lines(report: CampaignReport, fuzzing_seconds: float) -> Iterator[str]:
    """Yield how many runs and crash images were different, and how fast they were."""
    total = report.total()
    images, pairs = total.images, pairs_of(report.scores)
    yield (
        f"distinct  {counted(str(total.schedules), 'schedule')} in {counted(total.runs, 'run')}, "
        f"{counted(str(images), 'crash image')} in {counted(images.added, 'crash', 'crashes')}; "
        f"the next image is new with a probability of {images.chance_of_new:.0%}"
    )
    reached = f"{pairs.reached} of {counted(pairs.total, 'pair')}"
    yield f"reached   {reached} of a running action and a crash point"
    yield f"speed     {total.crashes / fuzzing_seconds:,.0f} crashes and recoveries a second"


def _never_lines(report: CampaignReport) -> Iterator[str]:
    """Yield the marks that were never reached; of many that are not required, their number."""
    others: list[str] = []
    for score in report.scores:
        required = missed(score, report.goal)
        for mark in never(score):
            line = f"never reached  {score.target.tag}: {mark}"
            if mark in required:
                yield f"{line} (required)"
            else:
                others.append(line)
    if len(report.scores) > 1 and len(others) > _MOST_MARKS:
        yield (
            f"never reached  {len(others)} marks that are not required; "
            "`powercut run TARGET` names those of one target"
        )
    else:
        yield from others


def _lines(report: CampaignReport, seconds: float) -> Iterator[str]:
    yield from _never_lines(report)
    for score in report.scores:
        if is_blind(score):
            yield f"note  {score.target.tag}: {_BLIND}"
    for findings in by_cause(report.findings):
        for number, finding in enumerate(findings):
            log = finding.run.log
            heading = "same cause" if number else "failed"
            yield f"{heading}  {log.target}: {log.broken}  {finding.replay}"
    plan = report.plan
    yield (
        f"{_VERDICTS[report.verdict]}  (model {plan.model.name}, seed {plan.seed}, {seconds:.0f} s)"
    )
