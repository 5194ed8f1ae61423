"""A clock that steps back, as one does that somebody sets, or that NTP corrects.

Switching the rule off puts the clock right again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faults.fault_effect import StepBack
from faults.fault_rule import Calls
from faults.injectors.trigger import Trigger


class SteppingClock:
    """Shows ``now_ns`` less every step that was taken; looks are counted over all clocks."""

    __slots__ = ("_now_ns", "_triggers")

    def __init__(self, triggers: Sequence[Trigger], now_ns: Callable[[], int]) -> None:
        self._triggers = triggers
        self._now_ns = now_ns

    def __call__(self) -> int:
        """Return nanoseconds since 1970."""
        now_ns = self._now_ns()
        for trigger in self._triggers:
            if trigger.strikes(Calls.CLOCK, ""):
                trigger.fired += 1
            effect = trigger.rule.effect
            if trigger.fired and trigger.on and isinstance(effect, StepBack):
                now_ns -= effect.back_ns
        return now_ns
