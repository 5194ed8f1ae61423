"""A seeded run: one run of a campaign, as the few numbers that determine it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

from powercut.fuzz.action import Action
from powercut.fuzz.drivers.swarm import Swarm, SwarmChoices, draw_swarm
from powercut.fuzz.finding import failure_of
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import Choices, PlainChoices, SeededChoices
from sim.disk.crash.persistence import PersistenceModel


@dataclass(frozen=True, slots=True)
class SeededRun:
    """Actions drawn from ``seed``, on a disk of its own under ``model``; then the end.

    ``steps`` is how many. With ``swarm``, the seed also says what the run is about; with
    ``various`` as well, how many steps it has, mostly ``steps``. It has ``at_most`` so many.
    ``faults`` is a fault plan as it prints; it is switched on before the first action, and
    the machine may lift it later. Empty: the machine chooses its faults alone.

    The end lifts all faults, and everything that was accepted must be done.
    """

    make_target: MakeTarget
    model: PersistenceModel
    seed: int
    steps: int
    faults: str = ""
    swarm: bool = False
    various: bool = False
    at_most: int | None = None

    def start(self) -> TargetRun:
        """Return a fresh run, its faults on."""
        target_run = TargetRun(self.make_target, self.model)
        if self.faults:
            target_run.perform(Action("fault_on", {"plan": self.faults}), PlainChoices())
        return target_run

    def sources(self, target_run: TargetRun) -> Iterator[Choices]:
        """Yield what each step has its choices from."""
        seeded = SeededChoices(self.seed)
        source: Choices = seeded
        steps = self.steps
        if self.swarm:
            swarm = draw_swarm(seeded, target_run, self.steps)
            source = SwarmChoices(seeded, swarm)
            steps = swarm.steps if self.various else steps
        yield from repeat(source, steps if self.at_most is None else min(steps, self.at_most))

    def about(self) -> Swarm | None:
        """Return what the run is about; None if it is no swarm."""
        return (
            draw_swarm(SeededChoices(self.seed), self.start(), self.steps) if self.swarm else None
        )

    def run(
        self, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[TargetRun, Exception | None]:
        """Do it; return the run, and what it raised.

        When ``is_over`` says so, no further step is done; the end is.
        """
        target_run = self.start()

        def steps() -> None:
            for choices in self.sources(target_run):
                if is_over():
                    break
                target_run.perform(target_run.propose(choices), choices)
            target_run.finish()

        try:
            return target_run, failure_of(steps)
        finally:
            target_run.abandon()
