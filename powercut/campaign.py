"""A campaign: many seeded runs of several targets, under a budget, counted honestly.

Every run is determined by the campaign's seed, its target and its number, and knows nothing
of the others. So a budget in examples gives the same counts in any number of processes; a
budget in seconds stops between two runs, and the counts say how many there were.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from xxhash import xxh3_64

from powercut.drivers.seeded_run import SeededRun
from powercut.finding import name_of
from powercut.tally import Tally
from powercut.targets import Target
from sim.disk.persistence import PersistenceModel

_BATCH_STEPS: Final = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign shall do.

    ``examples``: runs of each target, at most; ``deadline``: when to stop, as
    ``time.monotonic()`` tells it in seconds. At least one of the two is given. ``faults``
    is a fault plan as it prints; each run begins under it.
    """

    targets: tuple[Target, ...]
    model: PersistenceModel
    seed: int
    steps: int
    examples: int | None = None
    deadline: float | None = None
    faults: str = ""

    def run(self, target: Target, number: int) -> SeededRun:
        """Return run ``number`` (from 0) of ``target``."""
        seed = xxh3_64(f"{self.seed} {target.tag} {number}".encode()).intdigest()
        return SeededRun(target.make_subject, self.model, seed, self.steps, self.faults)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline


@dataclass(frozen=True, slots=True)
class Batch:
    """The runs ``first`` up to ``end`` of one target: what a process is given at once."""

    plan: Plan
    target: Target
    first: int
    end: int


class Failing(NamedTuple):
    """A run that failed, the shortest first: in step ``steps`` of run ``number``."""

    steps: int
    number: int


@dataclass(slots=True)
class Score:
    """What the runs of one target came to.

    ``failing``: for each way in which a run failed, the shortest run that did.
    """

    target: Target
    tally: Tally = field(default_factory=Tally)
    failed: int = 0
    failing: dict[str, Failing] = field(default_factory=dict)

    def fail(self, broken: str, failing: Failing) -> None:
        """Keep ``failing`` if it is the shortest of its kind."""
        self.failing[broken] = min(failing, self.failing.get(broken, failing))

    def add(self, other: Score) -> None:
        """Add other runs of the same target."""
        self.tally.add(other.tally)
        self.failed += other.failed
        for broken, failing in other.failing.items():
            self.fail(broken, failing)


def batches(plan: Plan) -> Iterator[Batch]:
    """Yield the whole campaign in turns of the targets; every target gets its first turn."""
    size = max(1, _BATCH_STEPS // plan.steps)
    for first in count(0, size):
        end = first + size if plan.examples is None else min(first + size, plan.examples)
        if first >= end or (first and plan.is_over):
            return
        yield from (Batch(plan, target, first, end) for target in plan.targets)


def run_batch(batch: Batch) -> Score:
    """Do the runs of a batch, at least one, until the time is up."""
    plan, score = batch.plan, Score(batch.target)
    for number in range(batch.first, batch.end):
        if number > batch.first and plan.is_over:
            break
        machine, failure = plan.run(batch.target, number).run()
        score.tally.add(machine.tally)
        if failure is not None:
            score.failed += 1
            score.fail(name_of(failure), Failing(len(machine.steps), number))
    return score
