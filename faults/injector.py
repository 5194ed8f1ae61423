"""The fault injector: carries out a fault plan on one disk after the other.

Each rule has an injector of its own (``faults/injectors``). Its state lasts over crashes: a
full disk stays full, a rotten sector stays rotten, and the third fsync is the third of the run.
"""

from __future__ import annotations

from typing import assert_never

from faults.call_kind import CallKind
from faults.fault_plan import (
    AfterGrowth,
    FailSync,
    FaultPlan,
    FaultRule,
    Misdirect,
    Refuse,
    Rot,
    ShortTransfer,
    StepBack,
)
from faults.injectors.damage import MisdirectInjector, RotInjector
from faults.injectors.failing import FailSyncInjector, RefuseInjector, ShortTransferInjector
from faults.injectors.misplaced_bytes import MisplacedBytes
from faults.injectors.rule_injector import RuleInjector
from faults.injectors.space import SpaceInjector
from sim.disk.cache.operation import Operation
from sim.disk.disk import Disk
from sim.errors import HarnessError
from sim.loop.clock import SimulatedClock


class NeverFired(HarnessError):
    """A rule of the plan never struck, so the run proves nothing about its fault.

    Cause: no call of the run matched the rule, or its condition was never met.
    Cure: correct the glob or the condition, or extend the run until the rule applies.
    """


class FaultInjector:
    """Carries out ``plan``. Install it on the disk of each lifetime in turn.

    It is the ``Interposer`` and ``DescriptorInterposer`` of the disk, and the ``interposer`` of
    the clock; a call passes the rules in the order of the plan. ``misplaced`` are the bytes that
    misdirected writes of an earlier plan have left on the same disk.
    """

    __slots__ = ("_clock", "_disk", "_injectors", "_misplaced", "_shift_ns")

    def __init__(self, plan: FaultPlan, misplaced: MisplacedBytes | None = None) -> None:
        self._misplaced = MisplacedBytes() if misplaced is None else misplaced
        self._injectors = tuple(_injector(rule, self._misplaced) for rule in plan.rules)
        self._disk: Disk | None = None
        self._clock: SimulatedClock | None = None
        self._shift_ns = 0

    @property
    def plan(self) -> FaultPlan:
        """The plan, with every rule as it is switched now."""
        return FaultPlan(tuple(one.rule.switched(on=one.on) for one in self._injectors))

    @property
    def fired(self) -> tuple[int, ...]:
        """How many faults each rule has injected, in the order of the plan."""
        return tuple(one.fired for one in self._injectors)

    def install(self, disk: Disk, clock: SimulatedClock | None = None) -> None:
        """Interpose on ``disk`` and ``clock``; install a crash counter after it.

        ``clock`` is the clock that the program and the disk read, ``World.clock`` in a
        world; only a rule on the clock needs it.

        Raises ``HarnessError`` if the disk has an interposer already, or if a rule on the
        clock has no clock.
        """
        if disk.interposer is not None:
            raise HarnessError(
                f"the disk has an interposer already, {disk.interposer}; remove() it if it is a "
                "fault injector, and install a crash counter after this one"
            )
        has_clock_rules = any(one.rule.calls is CallKind.CLOCK for one in self._injectors)
        if has_clock_rules and clock is None:
            raise HarnessError(f"fault plan '{self.plan}': a rule on the clock needs a clock")
        self._misplaced.boot(disk)
        for one in self._injectors:
            one.boot(disk)
        assert disk.descriptor_interposer is None
        self._disk = disk
        disk.interposer = disk.descriptor_interposer = self
        if has_clock_rules and clock is not None:
            if clock is not self._clock:
                self._clock, self._shift_ns = clock, 0
            clock.interposer = self
            self._set_clock()

    def remove(self) -> None:
        """Lift all faults, and take the injector off its disk and its clock."""
        self.lift()
        if self._disk is not None and self._disk.interposer is self:
            self._disk.interposer = self._disk.descriptor_interposer = None
        if self._clock is not None and self._clock.interposer is self:
            self._clock.interposer = None

    def switch(self, index: int, *, on: bool) -> None:
        """Switch rule ``index`` (from 0) on or off; while off, it counts nothing."""
        self._injectors[index].on = on
        self._set_clock()

    def lift(self) -> None:
        """Switch every rule off; a clock that was stepped back is right again.

        Misplaced bytes stay, as long as the injector is installed on the disk.
        """
        for one in self._injectors:
            one.on = False
        self._set_clock()

    def assert_fired(self) -> None:
        """Raise ``NeverFired``, naming the rules of the plan that never struck."""
        idle = [str(one.rule) for one in self._injectors if not one.fired]
        if idle:
            raise NeverFired(f"planned but never injected: {'; '.join(idle)}")

    # -- interposer of disk, descriptors and clock -----------------------------------------

    def before(self, operation: Operation, number: int) -> Operation:
        """See ``Interposer.before``."""
        for one in self._injectors:
            operation = one.before(operation, number)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        """See ``Interposer.after``."""
        self._misplaced.follow(operation)
        for one in self._injectors:
            one.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """See ``Interposer.reading``."""
        data = self._misplaced.shown(inode, offset, data)
        for one in self._injectors:
            data = one.reading(path, inode, offset, data)
        return data

    def opening(self, path: str, descriptors: int) -> None:
        """See ``DescriptorInterposer.opening``."""
        for one in self._injectors:
            one.opening(path, descriptors)

    def closing(self, path: str, inode: int) -> None:
        """See ``DescriptorInterposer.closing``."""
        for one in self._injectors:
            one.closing(path, inode)

    def reading_wall(self) -> None:
        """See ``ClockInterposer.reading_wall``."""
        for one in self._injectors:
            if one.strikes(CallKind.CLOCK, ""):
                one.fired += 1
        self._set_clock()

    def _set_clock(self) -> None:
        """Shift the clock by the steps of all rules that have fired and are on."""
        if self._clock is None:
            return
        shift_ns = 0
        for one in self._injectors:
            effect = one.rule.effect
            if isinstance(effect, StepBack) and one.on and one.fired:
                shift_ns -= effect.back_ns
        if shift_ns != self._shift_ns:
            self._clock.step_wall(shift_ns - self._shift_ns)
            self._shift_ns = shift_ns


def _injector(rule: FaultRule, misplaced: MisplacedBytes) -> RuleInjector:
    effect, condition = rule.effect, rule.condition
    match effect:
        case Refuse():
            if isinstance(condition, AfterGrowth):
                return SpaceInjector(rule, condition)
            return RefuseInjector(rule, effect)
        case FailSync():
            return FailSyncInjector(rule, effect)
        case ShortTransfer():
            return ShortTransferInjector(rule, effect)
        case Rot():
            return RotInjector(rule, effect)
        case Misdirect():
            return MisdirectInjector(rule, effect, misplaced)
        case StepBack():
            return RuleInjector(rule)
        case _:
            assert_never(effect)
