"""A bug of the runtime is reduced as far as one of a small program."""

from __future__ import annotations

from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.reduction import reduced
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY

PATIENCE = 600
"""Seconds: the test does not reach this limit."""


def test_bug_of_the_runtime_that_the_swarm_finds_becomes_a_story_of_a_few_steps() -> None:
    with REGISTRY.mutant("R7").planted() as make_target:
        runs = (SeededRun(make_target, POSIX, seed, 30, swarm=True).run() for seed in range(20))
        run = next(run for run in runs if run.failure is not None)
        smallest = reduced(run, PATIENCE)
    assert smallest.log.fails_like(run.log)
    assert len(smallest.log.steps) <= 8
