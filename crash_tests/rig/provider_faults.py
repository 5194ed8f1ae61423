"""What a provider may do wrong, as plain data that the harness switches on and off."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

from sim.errors import HarnessError


class ProviderFault(Enum):
    """One fault; it strikes whole requests."""

    TIMEOUT = "timeout"
    """The request is taken, and never answered."""
    BROKEN = "broken"
    """The stream breaks off: after the first tool call, or else after the first piece."""
    LOST = "lost"
    """The answer was produced, and remembered by a service; none of it arrives."""
    DUPLICATE = "duplicate"
    """The model runs twice: every tool call comes again, with the same id."""
    GARBAGE = "garbage"
    """Calls of tools that do not exist, with arguments that are not JSON; then no clean text."""
    SLOW = "slow"
    """Minutes of virtual time go by before each piece."""
    FORGOTTEN = "forgotten"
    """A service no longer knows the conversation that is taken up again."""
    REFUSED = "refused"
    """A conversation is not created."""
    STALLED = "stalled"
    """A call that opens, closes or lists conversations is never answered."""


IN_A_REQUEST = (
    ProviderFault.TIMEOUT, ProviderFault.BROKEN, ProviderFault.LOST, ProviderFault.DUPLICATE,
    ProviderFault.GARBAGE, ProviderFault.SLOW,
)  # fmt: skip


class ProviderFaults:
    """The faults that are on; ``fired`` counts how often each one struck."""

    __slots__ = ("_armed", "fired")

    def __init__(self) -> None:
        self._armed: dict[ProviderFault, int] = {}
        self.fired: defaultdict[ProviderFault, int] = defaultdict(int)

    def arm(self, fault: ProviderFault, times: int = 1) -> None:
        """Let ``fault`` strike the next ``times`` requests that it can strike."""
        if times < 1:
            raise HarnessError(f"a fault strikes at least once: times={times}")
        self._armed[fault] = self._armed.get(fault, 0) + times

    def lift(self) -> None:
        """Switch every fault off."""
        self._armed.clear()

    @property
    def armed(self) -> dict[ProviderFault, int]:
        """The faults that are on, and how often each one will still strike."""
        return dict(self._armed)

    def strike(self, *possible: ProviderFault) -> ProviderFault | None:
        """Return the first of ``possible`` that is on, which has then struck once."""
        if not self._armed:
            return None
        for fault in possible:
            left = self._armed.get(fault, 0)
            if left:
                self.fired[fault] += 1
                if left == 1:
                    del self._armed[fault]
                else:
                    self._armed[fault] = left - 1
                return fault
        return None
