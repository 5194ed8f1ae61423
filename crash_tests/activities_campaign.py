"""``python -m crash_tests.activities_campaign``: the effects of a campaign of ``activities``.

It runs the target from a seed, and reports the activities by their end: the provider, the
status, and the number of effects in the outside world. Runs are numbered as in ``powercut run``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import click

from crash_tests.rig.effect_ledger import ACTIONS
from crash_tests.targets.activities import ActivitiesTarget, activities
from powercut.fuzz.campaign.campaign import seed_of
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.memory import settle
from sim.disk.crash.persistence import POSIX, PersistenceModel, model_named

STEPS: Final = 30
_RUNS_PER_MEMORY: Final = 20


@dataclass(slots=True)
class Ends:
    """The sums over all runs.

    ``effects`` are those in the outside world, ``repeated`` those of them that a person has let
    happen again, ``interrupted`` the activities with an effect whose attempt was durable, and
    had no outcome, when a crash came.
    """

    runs: int = 0
    crashes: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    interrupted: int = 0
    by_end: Counter[tuple[str, str, bool, int]] = field(default_factory=Counter)

    def add(self, target: ActivitiesTarget, crashes: int) -> None:
        """Add a run that has passed."""
        self.runs += 1
        self.crashes += crashes
        self.by_end += target.by_end
        for (action, _, _, effects), number in target.by_end.items():
            self.effects[action] += effects * number
            self.repeated += max(0, effects - 1) * number
        performed = {key for key, number in target.effects.items() if number}
        self.interrupted += len(target.interrupted & performed)

    def report(self) -> str:
        """Return the table by end state, and the shares."""
        total = sum(self.effects.values())
        performed = sum(number for (*_, effects), number in self.by_end.items() if effects)
        lines = ["deduplicates  decided by  status     effects  activities"]
        for (action, status, is_decided, effects), number in sorted(self.by_end.items()):
            dedup = "yes" if ACTIONS[action].provider_dedup else "no"
            by = "a person" if is_decided else ""
            lines.append(f"{dedup:12}  {by:10}  {status:9}  {effects:7}  {number:10,}")
        without = sum(n for action, n in self.effects.items() if not ACTIONS[action].provider_dedup)
        lines += [
            f"{self.runs:,} runs, {self.crashes:,} crashes",
            f"{total:,} effects of {performed:,} activities",
            f"{without / total:.1%} of them at the provider that does not deduplicate",
            f"{self.interrupted:,} activities ({self.interrupted / performed:.1%}) interrupted",
            f"{self.repeated:,} effects were repeated, each by the decision of a person",
        ]
        return "\n".join(lines)


def campaign(seed: int, first: int, end: int, model: PersistenceModel = POSIX) -> Ends:
    """Return the ends of runs ``first`` to ``end``; raises the failure of the first that fails."""
    ends = Ends()
    for number in range(first, end):
        if number % _RUNS_PER_MEMORY == 0:
            settle()
        run = SeededRun(
            activities, model, seed_of(seed, ActivitiesTarget.tag, number), STEPS, swarm=True
        ).run()
        if run.failure is not None:
            raise run.failure
        assert isinstance(run.target, ActivitiesTarget)
        ends.add(run.target, run.tally.kills + run.tally.power_cuts)
    return ends


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a campaign and print its ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--model", default=POSIX.name)
    given = parser.parse_args(arguments)
    ends = campaign(given.seed, given.first, given.first + given.runs, model_named(given.model))
    click.echo(ends.report())


if __name__ == "__main__":
    main()
