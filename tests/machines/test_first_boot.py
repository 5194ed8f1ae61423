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
from sim.choices import Choices, PlainChoices, SeededChoices
from sim.disk.persistence import MODELS, PersistenceModel
from sim.disk.survivors import SurvivorSet
from sim.world import World

CRASHED = [tag for tag, make_subject in TARGETS.items() if not make_subject().calm]


def _booted(
    make_subject: MakeSubject,
    model: PersistenceModel,
    crash: PlannedCrash | None = None,
    choices: Choices | None = None,
) -> tuple[Subject, Lifetimes]:
    """Return a subject that was crashed in its first boot, and then booted."""
    choices = choices or PlainChoices()
    world, subject = World(choices, model), make_subject()
    tally = Tally(runs=1, marks=subject.marks)
    subject.enter(world)
    lifetimes = Lifetimes(subject, world, DiskFaults(world, subject, tally), tally, choices)
    if crash is not None:
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
@pytest.mark.parametrize("tag", CRASHED)
def test_what_is_acknowledged_after_a_crashed_first_boot_survives(
    tag: str, model: PersistenceModel
) -> None:
    make_subject = TARGETS[tag]
    _, whole = _booted(make_subject, model)
    for operation in range(1, whole.world.disk.operations + 1):
        for kind in (CrashKind.KILL, CrashKind.POWER_CUT):
            crash = PlannedCrash(operation, Phase.AFTER, kind)
            _act_and_lose_what_is_pending(*_booted(make_subject, model, crash))
        torn = PlannedCrash(operation, Phase.DURING, CrashKind.POWER_CUT)
        survivors = SeededChoices(operation)
        _act_and_lose_what_is_pending(*_booted(make_subject, model, torn, survivors))
