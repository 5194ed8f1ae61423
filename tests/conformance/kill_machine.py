"""The kill machine: the calls of the conformance machine, and kills in between.

A kill loses no operation that the kernel has accepted: the next boot finds the same tree. The
page cache must also equal the platter with every unsynced micro-operation applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from tests.conformance.arms import Arm, as_root, simulated
from tests.conformance.outcome import outcome, tree
from tests.conformance.random_calls import RandomCalls


class KillRules(RandomCalls):
    """Calls of root on a disk of any model."""

    @initialize(model=st.sampled_from(list(MODELS.values())))
    def start(self, model: PersistenceModel) -> None:
        self.begin(simulated(0, model))
        self.populate()

    def both(self, call: Callable[[Arm, int], Any]) -> Any:
        (arm,) = self.arms
        return outcome(arm, lambda: call(arm, 0))

    @rule()
    def kill(self) -> None:
        (arm,) = self.arms
        disk: Disk = arm.os.disk
        expected = tree(as_root(arm))
        image = disk.snapshot()
        # A power cut that every unsynced operation survives.
        assert disk.power_cut(SurvivorSet()).digest() == image.digest()
        disk.power_off()
        survivor = as_root(arm, Disk(image, disk.model))
        assert tree(survivor) == expected
        if not survivor.os.path.exists(survivor.top):
            survivor.os.mkdir(survivor.top)
        self.begin(survivor)

    def teardown(self) -> None:
        if hasattr(self, "arms"):
            self.kill()
