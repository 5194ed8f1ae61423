"""The fault injector: carries out a fault plan on one disk after the other.

Each rule has an injector of its own family (``faults/injectors``), which passes on to the
next what it leaves alone. What injectors did to data stays over crashes: a full disk stays
full, a rotten sector rotten, and a third fsync is the third of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from faults.fault_effect import FailSync, Misdirect, Refuse, Rot, Short, StepBack
from faults.fault_moment import After
from faults.injectors.clock import SteppingClock
from faults.injectors.failing import RefusingInjector, SyncInjector
from faults.injectors.misdirected import MisdirectInjector
from faults.injectors.passing import Injector, Nothing
from faults.injectors.rot import RotInjector
from faults.injectors.short import ShortInjector
from faults.injectors.space import SpaceInjector
from faults.injectors.trigger import Trigger
from faults.plan import FaultPlan
from sim.disk.disk import Disk
from sim.errors import HarnessError


class NeverFired(HarnessError):
    """A fault was planned and did not happen, so the run proves nothing about it.

    Cause: no call of the run matched the rule at its moment, or it never came so far.
    Cure: correct the glob or the moment, or let the run do what the rule waits for.
    """


class FaultInjector:
    """Carries out ``plan``. Install it on the disk of every lifetime in turn."""

    __slots__ = ("_chain", "_clocks", "_triggers")

    def __init__(self, plan: FaultPlan) -> None:
        self._triggers = tuple(Trigger(rule) for rule in plan.rules)
        chain: Injector = Nothing()
        for trigger in reversed(self._triggers):
            chain = _injector(trigger, chain)
        self._chain = chain
        self._clocks = tuple(
            trigger for trigger in self._triggers if isinstance(trigger.rule.effect, StepBack)
        )

    @property
    def plan(self) -> FaultPlan:
        """The plan, with every rule as it is switched now."""
        return FaultPlan(tuple(trigger.rule.switched(on=trigger.on) for trigger in self._triggers))

    @property
    def fired(self) -> tuple[int, ...]:
        """How often each rule's fault was really injected, in the order of the plan."""
        return tuple(trigger.fired for trigger in self._triggers)

    def install(self, disk: Disk) -> None:
        """Stand between ``disk`` and the program that will run on it.

        Install before the program looks at the clock, and before a crash counter.
        Raises ``HarnessError`` if something stands there already.
        """
        if disk.interposer is not None:
            raise HarnessError(f"the disk has an interposer already: {disk.interposer}")
        self._chain.boot(disk)
        disk.interposer = disk.descriptor_interposer = self._chain
        disk.now_ns = self.clock(disk.now_ns)

    def clock(self, now_ns: Callable[[], int]) -> Callable[[], int]:
        """Return a clock that shows ``now_ns`` with the plan's steps back."""
        return SteppingClock(self._clocks, now_ns) if self._clocks else now_ns

    def switch(self, index: int, *, on: bool) -> None:
        """Switch rule ``index`` (from 0) on or off; while off, it counts nothing."""
        self._triggers[index].on = on

    def lift(self) -> None:
        """Switch every rule off."""
        for trigger in self._triggers:
            trigger.on = False

    def assert_fired(self) -> None:
        """Raise ``NeverFired``, naming the rules of the plan that never struck."""
        idle = [str(trigger.rule) for trigger in self._triggers if not trigger.fired]
        if idle:
            raise NeverFired(f"planned but never injected: {'; '.join(idle)}")


def _injector(trigger: Trigger, behind: Injector) -> Injector:
    effect, moment = trigger.rule.effect, trigger.rule.moment
    match effect:
        case Refuse():
            if isinstance(moment, After):
                return SpaceInjector(trigger, moment, behind)
            return RefusingInjector(trigger, effect, behind)
        case FailSync():
            return SyncInjector(trigger, effect, behind)
        case Short():
            return ShortInjector(trigger, effect, behind)
        case Rot():
            return RotInjector(trigger, effect, behind)
        case Misdirect():
            return MisdirectInjector(trigger, effect, behind)
        case StepBack():
            return behind
        case _:
            assert_never(effect)
