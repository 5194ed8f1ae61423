"""Disk faults as actions of a machine: one fault plan is switched on, later it is lifted.

Only faults that a program can answer are here. A disk that lies about its barriers, or
tells of a failure one barrier too late, takes acknowledged data with it, and no program
can help it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faults.injector import FaultInjector
from faults.plan import FaultPlan
from oracles.marks import Mark
from powercut.action import Arguments, Kind
from powercut.subject import Subject
from powercut.tally import Tally
from sim.choices import Choices
from sim.disk.disk import Disk
from sim.world import World

RULES: Final = (
    "write * #{count} short:{size}B",
    "write * #{count} ENOSPC",
    "write * after {size}B ENOSPC",
    "write * #{count} EIO",
    "fsync * #{count} EIO:ext4",
    "fsync * #{count} EIO:xfs",
    "fsync * #{count} EIO:btrfs",
    "create * #{count} ENOSPC",
    "rename * #{count} EIO",
    "unlink * #{count} EIO",
    "resize * #{count} EIO",
    "read * #{count} EIO",
    "read * #{count}+ short:{size}B",
    "open * #{count} EMFILE",
    "close * #{count} EIO",
)
_MOST_COUNT: Final = 4
_SIZES: Final = (1, 10, 100, 600)


class DiskFaults:
    """The fault plan that is on in one world, and the two actions that change it.

    ``on``: the system may meet a fault. ``seen``: every plan of the run, as it prints.
    """

    __slots__ = ("_injector", "_subject", "_tally", "_world", "on", "seen")

    def __init__(self, world: World, subject: Subject, tally: Tally) -> None:
        self._world = world
        self._subject = subject
        self._tally = tally
        self._injector: FaultInjector | None = None
        self.on = False
        self.seen: list[str] = []

    def kinds(self) -> Sequence[Kind]:
        """Return the two actions."""
        return (
            Kind("fault_on", 2, self._switch_on, self._propose, lambda: not self.on),
            Kind("fault_off", 2, self._switch_off, ready=lambda: self.on),
        )

    def install(self, disk: Disk) -> None:
        """Stand before a disk that was just booted; the faults outlive a crash."""
        if self._injector is not None and self.on:
            self._injector.install(disk)

    def lift(self) -> None:
        """Switch every fault off, and count those that struck."""
        if self._injector is None or not self.on:
            return
        self._injector.lift()
        self.on = self._subject.faults_on = False
        fired = sum(self._injector.fired)
        self._tally.faults += fired
        if fired:
            self._tally.marks.reach(Mark.FAULT_FIRED)

    def _propose(self, choices: Choices) -> Arguments:
        rule = choices.pick("fault", RULES)
        count = choices.integer("count", 1, _MOST_COUNT)
        size = choices.pick("size", _SIZES)
        return {"plan": rule.format(count=count, size=size)}

    def _switch_on(self, arguments: Arguments) -> str:
        plan = FaultPlan.parse(str(arguments["plan"]))
        self._injector = FaultInjector(plan)
        disk = self._world.disk
        # The plan before this one is lifted, but still stands there.
        disk.interposer = disk.descriptor_interposer = None
        self._injector.install(disk)
        self.on = self._subject.faults_on = True
        self.seen.append(str(plan))
        return "on"

    def _switch_off(self, _arguments: Arguments) -> str:
        self.lift()
        return "off"
