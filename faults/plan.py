"""A fault plan: the faults of a run, as plain data on one line.

``fsync */events.jsonl #3 EIO:ext4; off write * after 40KiB ENOSPC`` has two rules, of which
the second is switched off. ``faults/injector.py`` carries a plan out.
"""

from __future__ import annotations

from dataclasses import dataclass

from faults.fault_rule import FaultRule
from sim.errors import HarnessError


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Rules in order; where two strike at one call, the first has its way first."""

    rules: tuple[FaultRule, ...] = ()

    def __str__(self) -> str:
        return "; ".join(str(rule) for rule in self.rules)

    @classmethod
    def parse(cls, text: str) -> FaultPlan:
        """Read what ``str`` wrote; an empty text is a plan without a fault.

        Raises ``HarnessError``, naming the piece that is wrong.
        """
        if not text.strip():
            return cls()
        return cls(tuple(FaultRule.parse(piece) for piece in text.split(";")))

    def switched(self, index: int, *, on: bool) -> FaultPlan:
        """Return this plan with rule ``index`` (from 0) on or off.

        Raises ``HarnessError`` if there is no such rule.
        """
        if not 0 <= index < len(self.rules):
            raise HarnessError(f"no rule index={index} in a fault plan of {len(self.rules)}")
        rules = list(self.rules)
        rules[index] = rules[index].switched(on=on)
        return FaultPlan(tuple(rules))

    def lifted(self) -> FaultPlan:
        """Return this plan with every rule off."""
        return FaultPlan(tuple(rule.switched(on=False) for rule in self.rules))
