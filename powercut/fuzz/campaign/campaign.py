"""A campaign: many swarm runs of several targets, under a budget.

Each run is determined by the campaign's seed, its target and its number, and is independent
of the others. So a budget in examples gives the same counts with any number of processes. A
budget in seconds stops between two steps; the counts say how many there were. The targets
take turns, in which each is given its ``turn_steps``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from xxhash import xxh3_64

from powercut.fuzz.campaign.corpus import LONGEST_STEPS, corpus_in, features_of
from powercut.fuzz.campaign.total_loss import TotalLoss
from powercut.fuzz.campaign.workers import work
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.memory import settle
from powercut.fuzz.printed import PRINTED
from powercut.fuzz.run_log import FailureKind, RecordedStep, losses_of
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import MakeTarget, TargetEntry
from powercut.fuzz.target_mistake import DEPENDS_ON_MORE, TargetMistake
from powercut.fuzz.target_run import TargetRun
from powercut.fuzz.time_limit import TimeOver, ended_after
from powercut.place import raised_at, running_at
from sim.disk.crash.persistence import PersistenceModel
from sim.loop.sandbox import SANDBOX

_REPEATED_STEPS: Final = 30

LONG_SECONDS: Final = 5.0
"""A run usually takes milliseconds; one that takes longer than this is named in an interrupt."""

ENDLESS_SECONDS: Final = 60.0
"""A run that goes on when the time is over is interrupted once it has taken this long.

Steps of some targets take more than ten seconds.
"""

_KINDS_OF_A_PROPERTY: Final = 4
"""The kinds of failure of one property that a target keeps: those with the shortest runs."""

_LOSSES_OF_A_PROPERTY: Final = 32


@dataclass(frozen=True, slots=True)
class Plan:
    """The targets and the budget of a campaign.

    ``examples`` is the largest number of runs of each target; ``deadline`` is a
    ``time.monotonic()``, in seconds. At least one of them is given. ``steps`` is the number of
    steps of each run; if they are ``various``, of most runs, while some have fewer and some
    many more. ``faults`` is a fault plan in printed form, in force when each run begins, except
    those of crash-free targets. ``reduction_seconds`` before the deadline, runs end if there is
    a failure to reduce. ``corpus`` is the directory of a corpus, or None.
    """

    targets: tuple[TargetEntry, ...]
    model: PersistenceModel
    seed: int
    steps: int
    examples: int | None = None
    deadline: float | None = None
    faults: str = ""
    various: bool = False
    reduction_seconds: float = 0.0
    corpus: Path | None = None

    def run(self, target: TargetEntry, number: int, at_most: int | None = None) -> SeededRun:
        """Return run ``number`` of ``target``, from 0, or its first ``at_most`` steps."""
        seed = seed_of(self.seed, target.tag, number)
        return SeededRun(
            _make_target(target), self.model, seed, self.steps,
            "" if target.crash_free else self.faults,
            swarm=True, various=self.various, at_most=at_most,
            prefix=corpus_in(self.corpus).prefix(target.tag, seed) if self.corpus else (),
        )  # fmt: skip

    def leaving_time_to_reduce(self) -> Plan:
        """Return the plan with a deadline that leaves time for reductions."""
        if self.deadline is None:
            return self
        return replace(self, deadline=self.deadline - self.reduction_seconds)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline


def seed_of(seed: int, tag: str, number: int) -> int:
    """Return the seed of run ``number`` of the target ``tag`` in the campaign of ``seed``."""
    return xxh3_64(f"{seed} {tag} {number}".encode()).intdigest()


@cache
def _make_target(target: TargetEntry) -> MakeTarget:
    """Import a target once in each process."""
    return target.load()


@dataclass(frozen=True, slots=True)
class Batch:
    """The runs ``first`` up to ``end`` of one target: one job of a worker process.

    All of it is plain values; the worker imports the target itself.
    """

    plan: Plan
    target: TargetEntry
    first: int
    end: int


class Failing(NamedTuple):
    """A run that failed in step ``steps``; shorter runs compare as less."""

    steps: int
    number: int


class Passing(NamedTuple):
    """A run that passed after ``steps`` steps; shorter runs compare as less."""

    steps: int
    number: int


class Losing(NamedTuple):
    """A failing run with ``losses`` different losses; one with fewer of them compares as less.

    Its failure is explained by fewer of them.
    """

    losses: int
    failing: Failing


class FailureLoss(NamedTuple):
    """A kind of failure, and a loss with which runs have ended in it (``losses_of``)."""

    kind: FailureKind
    loss: str


@dataclass(slots=True)
class Score:
    """The result of the runs of one target.

    ``unended`` are notes on runs that went on when their time was over, and were interrupted.
    ``failing`` maps each kind of failure to the shortest run that has ended in it, ``losing`` each
    kind and loss to the run with the fewest losses: failures of one kind may have several causes,
    which lose different data. ``reached`` maps each feature that the corpus lacks to the shortest
    run that reached it and passed. ``total_loss`` has the passed runs before the first failed one.
    """

    target: TargetEntry
    tally: Tally = field(default_factory=Tally)
    failed: int = 0
    failing: dict[FailureKind, Failing] = field(default_factory=dict)
    losing: dict[FailureLoss, Losing] = field(default_factory=dict)
    reached: dict[str, Passing] = field(default_factory=dict)
    unended: list[str] = field(default_factory=list)
    total_loss: TotalLoss = field(default_factory=TotalLoss)

    def reach(self, feature: str, passing: Passing) -> None:
        """Keep ``passing`` if it is the shortest run that has reached ``feature``."""
        self.reached[feature] = min(passing, self.reached.get(feature, passing))

    def fail(self, kind: FailureKind, failing: Failing) -> None:
        """Keep ``failing`` if it is the shortest run that has failed in this way.

        Of one property, only the kinds with the shortest runs are kept.
        """
        self.failing[kind] = min(failing, self.failing.get(kind, failing))
        of_property = [each for each in self.failing if each.broken == kind.broken]
        if len(of_property) > _KINDS_OF_A_PROPERTY:
            del self.failing[max(of_property, key=lambda each: (self.failing[each], each))]

    def lose(self, kind: FailureKind, loss: str, losing: Losing) -> None:
        """Keep ``losing`` if it has the fewest losses of the runs that fail so with this loss.

        Of one property, only the losses of the runs with the fewest are kept.
        """
        key = FailureLoss(kind, loss)
        self.losing[key] = min(losing, self.losing.get(key, losing))
        of_property = [each for each in self.losing if each.kind.broken == kind.broken]
        if len(of_property) > _LOSSES_OF_A_PROPERTY:
            del self.losing[max(of_property, key=lambda each: (self.losing[each], each))]

    def add(self, other: Score) -> None:
        """Add other runs of the same target."""
        assert other.target.tag == self.target.tag
        self.tally.add(other.tally)
        self.failed += other.failed
        self.unended += other.unended
        self.total_loss.noticed += other.total_loss.noticed
        for kind, failing in other.failing.items():
            self.fail(kind, failing)
        for (kind, loss), losing in other.losing.items():
            self.lose(kind, loss, losing)
        for feature, passing in other.reached.items():
            self.reach(feature, passing)


def scores(plan: Plan, processes: int, has_failed: Callable[[], bool]) -> Iterator[Score]:
    """Run a campaign; yield the score of each batch, in no order unless ``processes`` is 1.

    Memory is settled before each batch. As soon as ``has_failed`` returns True, new batches
    leave time for reductions. An interrupt has a note for each run that takes long.
    """
    if processes == 1:
        for batch in batches(plan, has_failed):
            settle()
            try:
                with SANDBOX.interruptible(), redirect_stdout(PRINTED), redirect_stderr(PRINTED):
                    score = run_batch(batch)
            except KeyboardInterrupt as interrupt:
                note = note_of_long_run(raised_at(interrupt.__traceback__))
                if note:
                    interrupt.add_note(note)
                raise
            yield score
    else:
        yield from work(_run_in_worker, batches(plan, has_failed), processes, note_of_worker)


def _run_in_worker(batch: Batch) -> Score:
    settle()
    with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
        return run_batch(batch)


def batches(plan: Plan, has_failed: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
    """Yield the jobs of a campaign in turns of the targets; each target has its first turn."""
    whole, shorter = plan, plan.leaving_time_to_reduce()
    for number in count():
        plan = shorter if has_failed() else whole
        turns = [_turn(plan, target, number) for target in plan.targets]
        turns = [turn for turn in turns if turn.first < turn.end]
        if not turns or (number and plan.is_over):
            return
        yield from turns


def _turn(plan: Plan, target: TargetEntry, number: int) -> Batch:
    size = max(1, target.turn // plan.steps)
    first, end = number * size, (number + 1) * size
    return Batch(plan, target, first, end if plan.examples is None else min(end, plan.examples))


@dataclass(slots=True)
class CurrentRun:
    """Run ``number``, from 0, of ``owner`` from ``seed``; ``run`` is None before its first step.

    ``owner`` is a target or a mutant, such as ``target 'kv'``.
    """

    owner: str
    number: int
    seed: int
    run: TargetRun | None = None
    started: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Make it the run of this process."""
        _CURRENT[:] = [self]

    def end(self) -> None:
        """Leave this process without a run."""
        _CURRENT.clear()

    def note(self, at: str) -> str:
        """Return how long it has taken, and where it is; ``at`` is the line that it executes."""
        seconds = time.monotonic() - self.started
        return (
            f"run {self.number} of {self.owner}, --seed {self.seed}, has taken {seconds:.0f} s; "
            f"it was interrupted {self._reached()}{at}"
        )

    def _reached(self) -> str:
        steps = [] if self.run is None else self.run.log.steps
        if not steps:
            return "before its first step"
        action, when = steps[-1].action, "after" if steps[-1].outcome else "in"
        return f"{when} step {len(steps)}, {action.wrapped or action}"


_CURRENT: Final[list[CurrentRun]] = []


def note_of_long_run(at: str) -> str:
    """Return where the run of this process is, empty if there is none, or it does not take long.

    ``at`` is the line of the program that it executes, as the end of a sentence.
    """
    if not _CURRENT or time.monotonic() - _CURRENT[0].started < LONG_SECONDS:
        return ""
    return _CURRENT[0].note(at)


def note_of_worker(frame: FrameType | None) -> str:
    """Return where the long run of this worker process is, which executes ``frame``."""
    return note_of_long_run(running_at(frame))


def run_batch(batch: Batch) -> Score:
    """Do the runs of a batch until the deadline.

    Run 0 of a target goes on after it, until it has taken ``ENDLESS_SECONDS``.
    """
    plan, score = batch.plan, Score(batch.target)
    for number in range(batch.first, batch.end):
        if number and plan.is_over:
            break
        _run_one(plan, number, score)
    return score


def _run_one(plan: Plan, number: int, score: Score) -> None:
    seeded = plan.run(score.target, number)
    current = CurrentRun(f"target {score.target.tag!r}", number, plan.seed)

    def is_over(run: TargetRun) -> bool:
        """Return whether the time is over; run 0 of a target goes on."""
        current.run = run
        return number > 0 and plan.is_over

    try:
        with SANDBOX.interruptible(), _ended_with(plan):
            current.begin()
            run = seeded.run(is_over)
            current.end()
            if run.failure is None and not score.failed and not plan.is_over:
                score.total_loss.repeat(number, run)
    except TimeOver as over:
        score.unended.append(current.note(raised_at(over.__traceback__)))
        current.end()
        return
    steps = run.log.steps
    score.tally.add(run.tally)
    score.tally.schedules.add(schedule_of(steps))
    if run.failure is None:
        if not number and not plan.is_over:
            _must_repeat(plan, score.target, steps)
        _reach(plan, run, Passing(len(steps), number), score)
    else:
        score.failed += 1
        kind, failing = run.log.failure_kind, Failing(len(steps) - bool(seeded.faults), number)
        score.fail(kind, failing)
        found = losses_of(steps)
        for loss in found:
            score.lose(kind, loss, Losing(len(found), failing))


def _ended_with(plan: Plan) -> AbstractContextManager[None]:
    """Interrupt a run that goes on when the time is over, but not before ``ENDLESS_SECONDS``."""
    if plan.deadline is None:
        return nullcontext()
    return ended_after(max(ENDLESS_SECONDS, plan.deadline - time.monotonic()))


def _must_repeat(plan: Plan, target: TargetEntry, steps: Sequence[RecordedStep]) -> None:
    """Repeat the first steps of run 0; raise ``TargetMistake`` if one differs."""
    again = plan.run(target, 0, _REPEATED_STEPS).run()
    for number, (step, repeated) in enumerate(zip(steps, again.log.steps, strict=False), 1):
        if step != repeated:
            shown = [f"{each.action} {each.outcome or 'fails'}" for each in (step, repeated)]
            raise TargetMistake(
                f"target {target.tag!r} is not repeatable: step {number} of run 0 is {shown[0]!r}, "
                f"and {shown[1]!r} when the run is repeated; {DEPENDS_ON_MORE}"
            )


def _reach(plan: Plan, run: TargetRun, passing: Passing, score: Score) -> None:
    if plan.corpus is not None and 0 < passing.steps <= LONGEST_STEPS:
        known = corpus_in(plan.corpus).features.get(score.target.tag, ())
        for feature in features_of(run):
            if feature not in known:
                score.reach(feature, passing)


def schedule_of(steps: Sequence[RecordedStep]) -> str:
    """Return the actions, crashes and choices of a run, without texts, to compare schedules."""
    return "\n".join(
        f"{' '.join(step.action.kind_names)} {[str(crash.point) for crash in step.crashes]}"
        f" {[chosen.value for chosen in step.chosen]} {step.outcome}"
        for step in steps
    )
