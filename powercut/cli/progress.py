"""The progress bar of a campaign, on a terminal only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from powercut.fuzz.campaign.campaign import Plan, Score


@contextmanager
def campaign_progress(console: Console, plan: Plan) -> Iterator[Callable[[Score], None]]:
    """Yield a function that moves the bar; call it with the score of each finished batch."""
    if not console.is_terminal:
        yield lambda _score: None
        return
    by_time = plan.deadline is not None and plan.examples is None
    started = time.monotonic()
    total = (plan.deadline or 0.0) - started if by_time else _runs(plan)
    counted = {"runs": 0, "crashes": 0, "failed": 0}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=total)

        def advance(score: Score) -> None:
            tally = score.tally
            counted["runs"] += tally.runs
            counted["crashes"] += tally.kills + tally.power_cuts
            counted["failed"] += score.failed
            done = time.monotonic() - started if by_time else counted["runs"]
            text = "  ".join(f"{name} {number:,}" for name, number in counted.items())
            progress.update(task, completed=done, description=text)

        yield advance


def _runs(plan: Plan) -> float:
    return float((plan.examples or 0) * len(plan.targets))
