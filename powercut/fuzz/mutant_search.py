"""The search for a mutant: a campaign of its target, and whether it found the planted bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings

from powercut.fuzz.action import Json
from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.reduction import SECONDS
from powercut.fuzz.reproducer import FAILURES
from powercut.fuzz.story import story


@dataclass(frozen=True, slots=True)
class MutantSearch:
    """The result of one search, as plain values.

    ``broken`` is the property of the first failure, or empty if no run failed; the mutant is
    found if it is one of ``expected``. ``examples`` is the number of runs up to that failure,
    or of all runs. ``seconds`` includes the reduction. ``steps`` and ``story`` are the number
    of actions and the report of the reduced failure.
    """

    tag: str
    title: str
    expected: tuple[str, ...]
    examples: int
    seconds: float
    broken: str = ""
    steps: int = 0
    story: str = ""

    @property
    def found(self) -> bool:
        """Whether the failure is one of those that the planted bug causes."""
        return self.broken in self.expected

    def plain(self) -> dict[str, Json]:
        """Return the search as ``--json`` shows it."""
        return {
            "id": self.tag,
            "found": self.found,
            "examples": self.examples,
            "seconds": round(self.seconds, 3),
            "steps": self.steps,
            "property": self.broken,
        }


def search_mutant(
    entry: MutantEntry,
    clock: Callable[[], float],
    budget: settings | None = None,
    folder: Path = FAILURES,
    reduction_seconds: float = SECONDS,
) -> MutantSearch:
    """Fuzz the target with the bug planted in it, until a run fails or the budget ends.

    ``clock`` returns seconds. ``budget`` left out is the current profile. The failure is
    reduced for ``reduction_seconds`` of processor time, and its reproducer is written to
    ``folder``. Raises ``HarnessError`` for a mutant that cannot be planted.
    """
    mutant, start = entry.mutant, clock()
    with entry.planted() as make_target:
        campaign = fuzz(
            make_target, budget=budget, folder=folder, reduction_seconds=reduction_seconds
        )
    expected = tuple(failure.__name__ for failure in mutant.properties)
    if not campaign.findings:
        return MutantSearch(entry.tag, mutant.title, expected, campaign.tally.runs, clock() - start)
    finding = campaign.findings[0]
    return MutantSearch(
        entry.tag,
        mutant.title,
        expected,
        campaign.runs_to_failure,
        clock() - start,
        finding.run.log.broken,
        len(finding.run.log.steps),
        story(finding),
    )
