"""Faults as actions of a run: one fault plan is switched on, and later lifted.

Most plans have one rule (``fault_families.py``), some have two, of which each may meet the
program while it handles the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from faults.injectors.misplaced_bytes import MisplacedBytes
from oracles.marks import FAULT_FIRED
from powercut.fuzz.action import FAULT_OFF, FAULT_ON, ActionKind, Arguments
from powercut.fuzz.fault_families import RULES, FaultFamily
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget
from sim.choices import Choices
from sim.world import World

_MOST_COUNT: Final = 4
_SIZES: Final = (1, 10, 100, 600)
_SHARES: Final = {
    FaultFamily.PARTIAL_WRITE: 4,
    FaultFamily.FAILED_BARRIER: 4,
    FaultFamily.REFUSED_CALL: 3,
}
_OWN_SHARE: Final = 4
_SECTORS: Final = (0, 1, 2)


class DiskFaults:
    """The fault plan in force in one world, and the two actions that change it.

    ``on`` is True while the system may meet a fault.
    """

    __slots__ = ("_injector", "_misplaced", "_rules", "_tally", "_target", "_world", "on")

    def __init__(self, world: World[Any], target: AnyTarget, tally: Tally) -> None:
        self._world = world
        self._target = target
        self._tally = tally
        self._injector: FaultInjector | None = None
        self._misplaced = MisplacedBytes()
        rules = [RULES[family] for family in by_share(target.fault_families)]
        own = [target.fault_rules] if target.fault_rules else []
        self._rules = rules + own * _OWN_SHARE
        self.on = False

    def actions(self) -> Sequence[ActionKind]:
        """Return ``fault_on`` and ``fault_off``."""
        return (
            ActionKind(FAULT_ON, 2, self._switch_on, self.propose, lambda: not self.on),
            ActionKind(FAULT_OFF, 2, self._switch_off, ready=lambda: self.on),
        )

    def install(self) -> None:
        """Install the plan in force, or the damage of earlier ones, in a new lifetime."""
        if self._injector is not None and (self.on or self._misplaced):
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
    def features(self) -> Mapping[str, int]:
        """Labels of which a swarm may leave out some answers, and their number of answers."""
        return {"family": len(self._rules)} if self._rules else {}

    def propose(self, choices: Choices, most_count: int = _MOST_COUNT) -> Arguments:
        """Choose a plan that strikes within the next ``most_count`` calls of some kind."""
        plan = self._rule(choices, most_count)
        if choices.integer("second fault", 0, 4) == 4:
            plan = f"{plan}; {self._rule(choices, most_count)}"
        return {"plan": plan}

    def _rule(self, choices: Choices, most_count: int) -> str:
        rule = choices.pick("fault", choices.pick("family", self._rules))
        count = choices.integer("count", 1, most_count)
        size, sector = choices.pick("size", _SIZES), choices.pick("sector", _SECTORS)
        return rule.format(count=count, following=count + 1, size=size, sector=sector)

    def switch_on(self, text: str) -> None:
        """Put the plan ``text`` in force; ``HarnessError`` if it cannot be parsed."""
        plan = FaultPlan.parse(text)
        if self._injector is not None:
            self._injector.remove()
        self._injector = FaultInjector(plan, self._misplaced)
        self._injector.install(self._world.disk, self._world.clock)
        self.on, self._target.fault_plan = True, str(plan)

    def _switch_on(self, arguments: Arguments) -> str:
        self.switch_on(str(arguments["plan"]))
        return "on"

    def _switch_off(self, _arguments: Arguments) -> str:
        self.lift()
        return "off"


def by_share(families: Iterable[FaultFamily]) -> tuple[FaultFamily, ...]:
    """Return the families, most of them once, and those that break most programs more often."""
    most = max(_SHARES.values())
    rounds = product(range(most), tuple(families))
    return tuple(family for number, family in rounds if number < _SHARES.get(family, 1))
