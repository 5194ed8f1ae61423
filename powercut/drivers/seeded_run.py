"""A seeded run: one run of a campaign, as the few numbers that determine it."""

from __future__ import annotations

from dataclasses import dataclass

from powercut.action import Action
from powercut.drivers.seeded import run_seeded
from powercut.machine import Machine
from powercut.subject import MakeSubject
from sim.choices import PlainChoices
from sim.disk.persistence import PersistenceModel


@dataclass(frozen=True, slots=True)
class SeededRun:
    """``steps`` actions drawn from ``seed``, on a disk of its own under ``model``.

    ``faults`` is a fault plan as it prints; it is switched on before the first action, and
    the machine may lift it later. Empty: the machine chooses its faults alone.
    """

    make_subject: MakeSubject
    model: PersistenceModel
    seed: int
    steps: int
    faults: str = ""

    def start(self) -> Machine:
        """Return a fresh machine, its faults on."""
        machine = Machine(self.make_subject, self.model)
        if self.faults:
            machine.perform(Action("fault_on", {"plan": self.faults}), PlainChoices())
        return machine

    def run(self) -> tuple[Machine, Exception | None]:
        """Do it; return the machine, and what it raised."""
        machine = self.start()
        return machine, run_seeded(machine, self.seed, self.steps)
