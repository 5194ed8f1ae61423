"""Total loss: whether the runs of a target fail if their power cuts lose everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from powercut.fuzz.target_run import TargetRun
from powercut.fuzz.time_limit import TimeOver
from sim.errors import HarnessError

_MOST_RUNS: Final = 20
_LEAST_BLIND: Final = 5
"""Of a target that checks its data, few runs have nothing to lose at any power cut."""


@dataclass(slots=True)
class TotalLoss:
    """The passed runs of a target that were repeated with a total loss.

    ``noticed`` says of each whether it fails then.
    """

    noticed: list[bool] = field(default_factory=list)

    @property
    def is_blind(self) -> bool:
        """Whether the target checks nothing that its actions have stored."""
        return len(self.noticed) >= _LEAST_BLIND and not any(self.noticed)

    def repeat(self, number: int, passed: TargetRun) -> None:
        """Repeat run ``number``, unless a run before it has noticed the loss, or many have not.

        Its power cuts leave the disk on which it began. No correct system leaves that one, so a
        run that cannot go on then, or does not end, has noticed it.
        """
        if number >= _MOST_RUNS or not passed.tally.power_cuts or any(self.noticed):
            return
        run = passed.fresh()
        start = run.crash_runner.world.image
        run.crash_runner.replace = lambda _number, _disk, _survivors: start
        try:
            self.noticed.append(run.repeat_nearest(passed.log.steps) is not None)
        except (HarnessError, TimeOver):
            self.noticed.append(True)
