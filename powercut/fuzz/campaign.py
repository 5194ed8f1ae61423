"""A campaign: many swarm runs of several targets, under a budget, counted honestly.

Every run is determined by the campaign's seed, its target and its number, and knows nothing
of the others. So a budget in examples gives the same counts in any number of processes; a
budget in seconds stops between two steps, and the counts say how many there were. Time is
shared out in turns: half of it to the whole runtime, a quarter to its other framing, the
rest to the parts (``TargetEntry.turn``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from xxhash import xxh3_64

from powercut.fuzz.drivers.seeded_run import SeededRun
from powercut.fuzz.finding import name_of
from powercut.fuzz.memory import give_back, settled
from powercut.fuzz.step import Step
from powercut.fuzz.tally import Tally
from powercut.fuzz.target_entry import TargetEntry
from sim.disk.crash.persistence import PersistenceModel


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign shall do.

    ``examples``: runs of each target, at most; ``deadline``: when to stop, as
    ``time.monotonic()`` tells it in seconds. At least one of the two is given. ``steps``:
    how many each run has; when they are ``various``, most runs have so many, some a few,
    and some many more. ``faults`` is a fault plan as it prints; each run begins under it.
    """

    targets: tuple[TargetEntry, ...]
    model: PersistenceModel
    seed: int
    steps: int
    examples: int | None = None
    deadline: float | None = None
    faults: str = ""
    various: bool = False

    def run(self, target: TargetEntry, number: int, at_most: int | None = None) -> SeededRun:
        """Return run ``number`` (from 0) of ``target``, or its first ``at_most`` steps."""
        seed = xxh3_64(f"{self.seed} {target.tag} {number}".encode()).intdigest()
        return SeededRun(
            target.make_target, self.model, seed, self.steps, self.faults,
            swarm=True, various=self.various, at_most=at_most,
        )  # fmt: skip

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline


@dataclass(frozen=True, slots=True)
class Batch:
    """The runs ``first`` up to ``end`` of one target: what a process is given at once."""

    plan: Plan
    target: TargetEntry
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

    target: TargetEntry
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
    for number in count():
        turns = [_turn(plan, target, number) for target in plan.targets]
        turns = [turn for turn in turns if turn.first < turn.end]
        if not turns or (number and plan.is_over):
            return
        yield from turns


def _turn(plan: Plan, target: TargetEntry, number: int) -> Batch:
    size = max(1, target.turn // plan.steps)
    first, end = number * size, (number + 1) * size
    return Batch(plan, target, first, end if plan.examples is None else min(end, plan.examples))


def run_batch(batch: Batch) -> Score:
    """Do the runs of a batch until the time is up; the first of all is done in any case."""
    plan, score = batch.plan, Score(batch.target)
    with settled():
        for number in range(batch.first, batch.end):
            if number and plan.is_over:
                break
            _run_one(plan, number, score)
    give_back()
    return score


def _run_one(plan: Plan, number: int, score: Score) -> None:
    run = plan.run(score.target, number)
    target_run, failure = run.run(lambda: plan.is_over) if number else run.run()
    score.tally.add(target_run.tally)
    score.tally.schedules.add(schedule_of(target_run.steps))
    if failure is not None:
        score.failed += 1
        steps = len(target_run.steps) - bool(plan.faults)
        score.fail(name_of(failure), Failing(steps, number))


def schedule_of(steps: Sequence[Step]) -> str:
    """Return what tells one schedule from another: actions, crashes, choices; no texts."""
    return "\n".join(
        f"{step.action.kinds()} {[str(crash.point) for crash in step.crashes]}"
        f" {[chosen.value for chosen in step.chosen]} {step.outcome}"
        for step in steps
    )
