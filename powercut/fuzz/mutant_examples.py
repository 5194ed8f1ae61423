"""The search for a mutant in a test: examples of Hypothesis, the same every time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hypothesis import settings

from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.mutant_search import MutantSearch, found_at_start, result_of
from powercut.fuzz.reduction import SECONDS
from powercut.fuzz.reproducer import FAILURES
from powercut.fuzz.target_mistake import FailsAtStart


def search_mutant(
    entry: MutantEntry,
    clock: Callable[[], float],
    budget: settings | None = None,
    folder: Path = FAILURES,
    reduction_seconds: float = SECONDS,
) -> MutantSearch:
    """Fuzz the target with the bug planted in it, until a run breaks its properties.

    If the budget ends before that, the first failure of another kind is the result. ``clock``
    returns seconds. ``budget`` left out is the current profile. The failure is reduced for
    ``reduction_seconds`` of processor time, and its reproducer is written to ``folder``. Raises
    ``HarnessError`` for a mutant that cannot be planted.
    """
    start = clock()
    expected = [failure.__name__ for failure in entry.mutant.properties]
    search = partial(fuzz, budget=budget, folder=folder, reduction_seconds=reduction_seconds)
    with entry.planted() as make_target:
        try:
            campaign = search(make_target, properties=expected)
            if not campaign.findings:
                campaign = search(make_target)
        except FailsAtStart as mistake:
            return found_at_start(entry, mistake, clock() - start)
    if not campaign.findings:
        return result_of(entry, campaign.tally.runs, clock() - start)
    return result_of(entry, campaign.runs_to_failure, clock() - start, campaign.findings[0])
