"""A crash inside the very first boot, which the machines never see: they begin with a whole one.

What that boot made is there after a kill, but not durable. Whoever takes it for durable
because it exists loses, at the next power cut, all that was acknowledged on top of it (R18).
"""

from __future__ import annotations

import pytest

from faults.crash_point import CrashKind, Phase
from powercut.crash_plan import PlannedCrash
from powercut.disk_faults import DiskFaults
from powercut.lifetimes import Lifetimes
from powercut.machines.targets import TARGETS
from powercut.subject import MakeSubject, Subject
from powercut.tally import Tally
from sim.choices import PlainChoices
from sim.disk.persistence import MODELS, PersistenceModel
from sim.disk.survivors import SurvivorSet
from sim.world import World

MOST_OPERATIONS = 16


def _booted(
    make_subject: MakeSubject, model: PersistenceModel, crash: PlannedCrash
) -> tuple[Subject, Lifetimes]:
    """Return a subject that was crashed in its first boot, and then booted."""
    choices = PlainChoices()
    world, subject = World(choices, model), make_subject()
    tally = Tally(runs=1, marks=subject.marks)
    faults = DiskFaults(world, subject, tally)
    lifetimes = Lifetimes(subject, world, faults, tally, choices)
    lifetimes.boot(crash)
    lifetimes.boot()
    return subject, lifetimes


def _act_and_lose_what_is_pending(subject: Subject, lifetimes: Lifetimes) -> None:
    """Let the first kind of action be acknowledged; keep nothing that no barrier covers."""
    action = subject.kinds()[0]
    assert action.perform(action.propose(PlainChoices())) == "ack"
    world = lifetimes.world
    pending = len(world.disk.pending().micros)
    world.cut_power(SurvivorSet(lost=tuple(range(pending))))
    lifetimes.boot()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("tag", TARGETS)
def test_what_is_acknowledged_after_a_crashed_first_boot_survives(
    tag: str, model: PersistenceModel
) -> None:
    for operation in range(1, MOST_OPERATIONS):
        for kind in (CrashKind.KILL, CrashKind.POWER_CUT):
            crash = PlannedCrash(operation, Phase.AFTER, kind)
            _act_and_lose_what_is_pending(*_booted(TARGETS[tag], model, crash))
