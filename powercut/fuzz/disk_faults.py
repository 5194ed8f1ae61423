"""Disk faults as actions of a run: one fault plan is switched on, and later lifted.

Only faults to which a program can react are injected here. A disk that ignores barriers, or
reports a failure one barrier too late, loses acknowledged data whatever the program does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from oracles.marks import FAULT_FIRED
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget
from sim.choices import Choices
from sim.world import World

PARTIAL_WRITES: Final = (
    "write * #{count} short:{size}B; write * #{following} ENOSPC",
    "write * #{count} short:{size}B; write * #{following} EIO",
    "write * after {size}B ENOSPC",
    "write * #{count} short:{size}B",
)
FAILED_BARRIERS: Final = (
    "fsync * #{count} EIO:ext4",
    "fsync * #{count} EIO:xfs",
    "fsync * #{count} EIO:btrfs",
)
REFUSED_CALLS: Final = (
    "write * #{count} ENOSPC",
    "write * #{count} EIO",
    "create * #{count} ENOSPC",
    "rename * #{count} EIO",
    "unlink * #{count} EIO",
    "resize * #{count} EIO",
    "read * #{count} EIO",
    "read * #{count}+ short:{size}00B",
    "open * #{count} EMFILE",
    "close * #{count} EIO",
)
FAMILIES: Final = (PARTIAL_WRITES, FAILED_BARRIERS, REFUSED_CALLS)
"""The families are chosen equally often: the first two break programs most."""

_MOST_COUNT: Final = 4
_SIZES: Final = (1, 10, 100, 600)


class DiskFaults:
    """The fault plan in force in one world, and the two actions that change it.

    ``on`` is True while the system may meet a fault.
    """

    __slots__ = ("_injector", "_tally", "_target", "_world", "on")

    def __init__(self, world: World[Any], target: AnyTarget, tally: Tally) -> None:
        self._world = world
        self._target = target
        self._tally = tally
        self._injector: FaultInjector | None = None
        self.on = False

    def actions(self) -> Sequence[ActionKind]:
        """Return ``fault_on`` and ``fault_off``."""
        return (
            ActionKind("fault_on", 2, self._switch_on, self.propose, lambda: not self.on),
            ActionKind("fault_off", 2, self._switch_off, ready=lambda: self.on),
        )

    def install(self) -> None:
        """Install the plan in force in the lifetime that was just booted."""
        if self._injector is not None and self.on:
            self._injector.install(self._world.disk, self._world.clock)

    def lift(self) -> None:
        """Lift the plan, and count the faults that it has injected."""
        if self._injector is None or not self.on:
            return
        self._injector.lift()
        self.on, self._target.fault_plan = False, ""
        fired = sum(self._injector.fired)
        self._tally.faults += fired
        if fired:
            self._tally.marks.reach(FAULT_FIRED)

    @property
    def families(self) -> Sequence[Sequence[str]]:
        """The families of rules that are injected into this target."""
        own = self._target.fault_rules
        return (*FAMILIES, own) if own else FAMILIES

    def propose(self, choices: Choices, most_count: int = _MOST_COUNT) -> Arguments:
        """Choose a plan that fails one of the next ``most_count`` calls of some kind."""
        rules = choices.pick("family", self.families)
        rule = choices.pick("fault", rules)
        count = choices.integer("count", 1, most_count)
        size = choices.pick("size", _SIZES)
        return {"plan": rule.format(count=count, following=count + 1, size=size)}

    def switch_on(self, text: str) -> None:
        """Put the plan ``text`` in force; ``HarnessError`` if it cannot be parsed."""
        plan = FaultPlan.parse(text)
        if self._injector is not None:
            self._injector.remove()
        self._injector = FaultInjector(plan)
        self._injector.install(self._world.disk, self._world.clock)
        self.on, self._target.fault_plan = True, str(plan)

    def _switch_on(self, arguments: Arguments) -> str:
        self.switch_on(str(arguments["plan"]))
        return "on"

    def _switch_off(self, _arguments: Arguments) -> str:
        self.lift()
        return "off"
