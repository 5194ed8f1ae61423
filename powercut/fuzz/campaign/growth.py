"""The growth of a corpus: the runs of a campaign that reached something new are added to it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from typing import Final

from powercut.fuzz.campaign.campaign import Passing, Plan, Score
from powercut.fuzz.campaign.corpus import add_run
from powercut.fuzz.printed import PRINTED

GROWTH_SECONDS: Final = 60
"""The time for adding runs to a corpus, after the deadline of the campaign."""


def grow(plan: Plan, scores: Iterable[Score], seconds: float = GROWTH_SECONDS) -> int:
    """Add to the corpus the runs that reached something new; return their number.

    Each run is repeated, the shortest first. None begins after ``seconds``: the features that
    only the others reached are new to the next campaign as well.
    """
    assert plan.corpus is not None
    added, end = 0, time.monotonic() + seconds
    for score in scores:
        features: dict[Passing, list[str]] = {}
        for feature, passing in score.reached.items():
            features.setdefault(passing, []).append(feature)
        for passing, reached in sorted(features.items()):
            if time.monotonic() >= end:
                return added
            at_most = passing.steps - bool(plan.faults and not score.target.crash_free)
            with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
                run = plan.run(score.target, passing.number, at_most).run()
            if run.failure is None:
                add_run(plan.corpus, run, reached)
                added += 1
    return added
