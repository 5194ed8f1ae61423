"""The plain driver: a seed, a number of steps, and nothing in between.

The swarm driver (random subsets of actions and faults, random weights) will stand on it.
"""

from __future__ import annotations

from powercut.finding import failure_of
from powercut.machine import Machine
from sim.choices import SeededChoices


def run_seeded(machine: Machine, seed: int, steps: int) -> Exception | None:
    """Let a fresh machine do ``steps`` actions and finish; return what it raised, or None.

    The same seed repeats the run. ``machine.steps`` then tells what was done.
    """
    return failure_of(lambda: _run(machine, seed, steps))


def _run(machine: Machine, seed: int, steps: int) -> None:
    choices = SeededChoices(seed)
    for _ in range(steps):
        machine.perform(machine.propose(choices), choices)
    machine.finish()
