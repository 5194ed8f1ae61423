"""A crash inside the first boot of all, which a target run never makes: it begins after one.

The directories of that boot exist after a kill, but are not durable. A system that takes them
for durable loses everything acknowledged in them at the next power cut.
"""

from __future__ import annotations

from functools import partial

import pytest

from crash_tests.rig.host import simulated_host
from faults.crash_point import CrashKind, Phase
from powercut.fuzz.crash_runner import CrashRunner, PlannedCrash
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget, MakeTarget
from sim.choices import Choices, PlainChoices, SeededChoices
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.world import World
from tests.registry import REGISTRY
from tests.sample import Sample, in_the_gate

ACKNOWLEDGED = ("ack", "emitted")
BOOTS_LIKE_DURABLE = "activities"
CRASHED = [
    target.tag
    for target in REGISTRY.all_targets()
    if not target.make_target().crash_free and target.tag != BOOTS_LIKE_DURABLE
]


def _booted(
    make_target: MakeTarget,
    model: PersistenceModel,
    crash: PlannedCrash | None = None,
    choices: Choices | None = None,
) -> tuple[AnyTarget, CrashRunner]:
    """Return a target that was crashed in its first boot, and then booted."""
    choices = choices or PlainChoices()
    world, target = World(simulated_host, choices, model), make_target()
    tally = Tally(runs=1, marks=target.marks)
    target.attach(world)
    crash_runner = CrashRunner(target, world, DiskFaults(world, target, tally), tally, choices)
    if crash is not None:
        crash_runner.boot(crash)
    crash_runner.boot()
    return target, crash_runner


def _act_and_lose_unsynced(target: AnyTarget, crash_runner: CrashRunner) -> None:
    """Perform the first kind of action until it is acknowledged; lose all unsynced operations."""
    action = target.actions()[0]
    assert action.perform(action.propose(PlainChoices())) in ACKNOWLEDGED
    world = crash_runner.world
    pending = len(world.disk.unsynced().micros)
    world.cut_power(SurvivorSet(lost=tuple(range(pending))))
    crash_runner.boot()


@pytest.mark.parametrize("model", in_the_gate(MODELS, lambda model: model == "posix"))
@pytest.mark.parametrize("tag", CRASHED)
def test_acknowledged_action_after_a_crashed_first_boot_survives(
    tag: str, model: str, sample: Sample
) -> None:
    make_target = REGISTRY.target(tag).make_target
    boot = partial(_booted, make_target, MODELS[model])
    _, whole = boot()
    for operation in sample(range(1, whole.world.disk.operations + 1), 12):
        for kind in (CrashKind.KILL, CrashKind.POWER_CUT):
            crash = PlannedCrash(operation, Phase.AFTER, kind)
            _act_and_lose_unsynced(*boot(crash))
        torn = PlannedCrash(operation, Phase.DURING, CrashKind.POWER_CUT)
        survivors = SeededChoices(operation)
        _act_and_lose_unsynced(*boot(torn, survivors))
