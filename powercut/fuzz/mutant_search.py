"""The search for a mutant: a campaign of its target, and whether it found the planted bug.

``search_swarm`` is the search of the command: swarm runs from a seed, as ``powercut run`` does
them. That of a test is in ``mutant_examples.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from powercut.fuzz.action import Json
from powercut.fuzz.campaign.campaign import CurrentRun, seed_of
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
from powercut.fuzz.time_limit import TimeOver
from powercut.place import raised_at
from sim.disk.crash.persistence import POSIX
from sim.loop.sandbox import SANDBOX

_WALL_SECONDS: Final = 3
"""The most seconds of the wall clock for one of processor time, on a busy machine."""


@dataclass(frozen=True, slots=True)
class MutantSearch:
    """The result of one search, as plain values.

    ``broken`` is the property of the failure, or empty if no run failed; the mutant is found
    if it is one of ``expected``. ``examples`` is the number of runs up to that failure, or of
    all runs. ``seconds`` includes the reduction. ``steps`` and ``story`` are the number
    of actions and the report of the reduced failure. ``note`` says where the last run was when it
    was interrupted; it is empty if all runs have ended.
    """

    tag: str
    title: str
    expected: tuple[str, ...]
    examples: int
    seconds: float
    broken: str = ""
    steps: int = 0
    story: str = ""
    note: str = ""

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
    within: Callable[[float], AbstractContextManager[object]] = nullcontext,
) -> MutantSearch:
    """Do swarm runs of the target with the bug planted in it, until one breaks its properties.

    They end after ``seconds`` of ``clock``, a function that returns seconds; then the first
    failure of another kind, which the bug may have caused as well, is the result. The failure is
    reduced for ``reduction_seconds`` of processor time, and its reproducer is written to
    ``folder``; ``seconds`` of the result leave that out. ``within`` returns a context that raises
    ``TimeOver`` in a run that does not end by then, such as ``ended_after``. Raises
    ``HarnessError`` for a mutant that cannot be planted.
    """
    start, note, runs = clock(), "", _Runs()
    with ExitStack() as stack:
        try:
            with SANDBOX.interruptible(), within(seconds):
                make_target = stack.enter_context(entry.planted())
                stack.enter_context(settled())
                runs.until_found(make_target, entry, seed, lambda: clock() - start >= seconds)
        except FailsAtStart as mistake:
            return found_at_start(entry, mistake, clock() - start)
        except TimeOver as over:
            note = runs.note(entry, raised_at(over.__traceback__))
        taken = clock() - start
        if runs.failed is None:
            return result_of(entry, runs.number, taken, note=note)
        failed = _reduced_within(within, runs.failed, reduction_seconds)
        return result_of(entry, runs.number, taken, keep(failed, folder), note)


@dataclass(slots=True)
class _Runs:
    """The number of the runs so far; the one that is the result, or None if none has failed.

    ``current`` is the last one, None before the first.
    """

    number: int = 0
    failed: TargetRun | None = None
    current: CurrentRun | None = None

    def until_found(
        self, make_target: MakeTarget, entry: MutantEntry, seed: int, is_over: Callable[[], bool]
    ) -> None:
        """Do runs until one breaks a property of the mutant, or the time is over.

        Without such a run, the first that fails at all is the result.
        """
        tag = entry.target.tag if entry.target is not None else entry.tag
        expected = {failure.__name__ for failure in entry.mutant.properties}
        steps = PROFILES["default"].steps
        while not is_over() or not self.number:
            seeded = SeededRun(
                make_target, POSIX, seed_of(seed, tag, self.number), steps, swarm=True, various=True
            )
            current = self.current = CurrentRun(f"mutant {entry.tag!r}", self.number, seed)
            self.number += 1
            current.begin()
            run = seeded.run(partial(_is_over, current, is_over))
            current.end()
            is_found = run.log.broken in expected
            if is_found or (self.failed is None and run.failure is not None):
                self.failed = run
            if is_found:
                break

    def note(self, entry: MutantEntry, at: str) -> str:
        """End the last run, and return where it was interrupted; ``at`` is the line."""
        if self.current is None:
            return f"the planting of mutant {entry.tag!r} was interrupted{at}"
        self.current.end()
        return self.current.note(at)


def _is_over(current: CurrentRun, is_over: Callable[[], bool], run: TargetRun) -> bool:
    current.run = run
    return is_over()


def _reduced_within(
    within: Callable[[float], AbstractContextManager[object]], failed: TargetRun, seconds: float
) -> TargetRun:
    """Return a failure reduced; as it is, if a smaller run of it does not end."""
    try:
        with SANDBOX.interruptible(), within(_WALL_SECONDS * seconds):
            return reduced(failed, seconds)
    except TimeOver:
        return failed


def result_of(
    entry: MutantEntry,
    examples: int,
    seconds: float,
    finding: Finding | None = None,
    note: str = "",
) -> MutantSearch:
    """Return the result of a search of ``examples`` runs, the last of which failed, or none."""
    mutant = entry.mutant
    expected = tuple(failure.__name__ for failure in mutant.properties)
    if finding is None:
        return MutantSearch(entry.tag, mutant.title, expected, examples, seconds, note=note)
    log = finding.run.log
    return MutantSearch(
        entry.tag, mutant.title, expected, examples, seconds, log.broken, len(log.steps),
        story(finding), note,
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
