"""The search for a mutant: a campaign of its target, and whether it found the planted bug.

``search_swarm`` is the search of the command: swarm runs from a seed, as ``powercut run`` does
them. That of a test is in ``mutant_examples.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from powercut.fuzz.action import Json
from powercut.fuzz.campaign.campaign import seed_of
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.memory import settled
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.profiles import PROFILES
from powercut.fuzz.reduction import SECONDS, reduced
from powercut.fuzz.reproducer import FAILURES, Finding, keep
from powercut.fuzz.story import story
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_mistake import FailsAtStart
from powercut.fuzz.target_run import TargetRun
from sim.disk.crash.persistence import POSIX


@dataclass(frozen=True, slots=True)
class MutantSearch:
    """The result of one search, as plain values.

    ``broken`` is the property of the failure, or empty if no run failed; the mutant is found
    if it is one of ``expected``. ``examples`` is the number of runs up to that failure, or of
    all runs. ``seconds`` includes the reduction. ``steps`` and ``story`` are the number
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


def search_swarm(
    entry: MutantEntry,
    clock: Callable[[], float],
    seconds: float,
    seed: int = 0,
    folder: Path = FAILURES,
    reduction_seconds: float = SECONDS,
) -> MutantSearch:
    """Do swarm runs of the target with the bug planted in it, until one breaks its properties.

    They end after ``seconds`` of ``clock``, a function that returns seconds; then the first
    failure of another kind, which the bug may have caused as well, is the result. The failure is
    reduced for ``reduction_seconds`` of processor time, and its reproducer is written to
    ``folder``; ``seconds`` of the result leave that out. Raises ``HarnessError`` for a mutant
    that cannot be planted.
    """
    start = clock()
    with entry.planted() as make_target, settled():
        tag = entry.target.tag if entry.target is not None else entry.tag
        expected = {failure.__name__ for failure in entry.mutant.properties}
        try:
            runs, failed = _until_found(
                make_target, tag, seed, expected, lambda: clock() - start >= seconds
            )
        except FailsAtStart as mistake:
            return found_at_start(entry, mistake, clock() - start)
        taken = clock() - start
        if failed is None:
            return result_of(entry, runs, taken)
        return result_of(entry, runs, taken, keep(reduced(failed, reduction_seconds), folder))


def _until_found(
    make_target: MakeTarget,
    tag: str,
    seed: int,
    expected: Collection[str],
    is_over: Callable[[], bool],
) -> tuple[int, TargetRun | None]:
    """Return the number of runs, and the first that broke a property of ``expected``.

    Without one, the second is the first run that failed at all, if there is one.
    """
    steps = PROFILES["default"].steps
    failed: TargetRun | None = None
    for number in count(1):
        seeded = SeededRun(
            make_target, POSIX, seed_of(seed, tag, number - 1), steps, swarm=True, various=True
        )
        run = seeded.run(lambda _run: is_over())
        if run.log.broken in expected:
            return number, run
        if failed is None and run.failure is not None:
            failed = run
        if is_over():
            return number, failed
    raise AssertionError("runs end with a failure or the budget")


def result_of(
    entry: MutantEntry, examples: int, seconds: float, finding: Finding | None = None
) -> MutantSearch:
    """Return the result of a search of ``examples`` runs, the last of which failed, or none."""
    mutant = entry.mutant
    expected = tuple(failure.__name__ for failure in mutant.properties)
    if finding is None:
        return MutantSearch(entry.tag, mutant.title, expected, examples, seconds)
    log = finding.run.log
    return MutantSearch(
        entry.tag, mutant.title, expected, examples, seconds, log.broken, len(log.steps),
        story(finding),
    )  # fmt: skip


def found_at_start(entry: MutantEntry, mistake: FailsAtStart, seconds: float) -> MutantSearch:
    """Return the result for a mutant that fails at its first start by one of its properties.

    A property may also be the exception that a recovery raises, as the program raised it. Raises
    ``mistake`` if the mutant fails in another way.
    """
    mutant, failure = entry.mutant, mistake.__cause__
    assert failure is not None
    expected = tuple(each.__name__ for each in mutant.properties)
    for each in (failure, failure.__cause__):
        broken = type(each).__name__
        if broken in expected:
            text = str(mistake)
            return MutantSearch(entry.tag, mutant.title, expected, 1, seconds, broken, 0, text)
    raise mistake
