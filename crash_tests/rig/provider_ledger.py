"""The state of the providers outside the simulated machine, which survives every crash.

The ledger has the requests that all providers of one world received, the answers that they
produced, and the faults of their next requests.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sim.errors import HarnessError
from system.ports import Exchange


class ProviderFault(Enum):
    """A fault of one request or call."""

    TIMEOUT = "timeout"
    """The request is received and never answered."""
    BROKEN = "broken"
    """The stream breaks off after the first tool call, or else after the first piece."""
    LOST = "lost"
    """The answer is produced, and stored by a service; no piece of it arrives."""
    DUPLICATE = "duplicate"
    """The model runs twice: every tool call is repeated, with the same id."""
    GARBAGE = "garbage"
    """Calls of unknown tools with arguments that are not JSON, then text that is not UTF-8."""
    SLOW = "slow"
    """Minutes of virtual time pass before each piece."""
    CONVERSATION_LOST = "conversation-lost"
    """A service has deleted the conversation that is to be resumed."""
    REFUSED = "refused"
    """A conversation is not created."""
    STALLED = "stalled"
    """A call that opens, closes or lists conversations is never answered."""


REQUEST_FAULTS: Final = (
    ProviderFault.TIMEOUT, ProviderFault.BROKEN, ProviderFault.LOST, ProviderFault.DUPLICATE,
    ProviderFault.GARBAGE, ProviderFault.SLOW,
)  # fmt: skip


class ProviderFaults:
    """The armed faults; ``fired`` counts the requests that each fault has met."""

    __slots__ = ("_armed", "fired")

    def __init__(self) -> None:
        self._armed: dict[ProviderFault, int] = {}
        self.fired: defaultdict[ProviderFault, int] = defaultdict(int)

    def arm(self, fault: ProviderFault, times: int = 1) -> None:
        """Arm ``fault`` for the next ``times`` requests that can meet it."""
        if times < 1:
            raise HarnessError(f"a fault is armed for at least one request: times={times}")
        self._armed[fault] = self._armed.get(fault, 0) + times

    def clear(self) -> None:
        """Disarm every fault."""
        self._armed.clear()

    @property
    def armed(self) -> dict[ProviderFault, int]:
        """The armed faults, each with the number of requests that will meet it."""
        return dict(self._armed)

    def fire(self, *possible: ProviderFault) -> ProviderFault | None:
        """Return the first of ``possible`` that is armed, and count it as fired once."""
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


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a provider, as the provider received it.

    ``session`` is the key of the opening, ``identity`` the service's name of the conversation
    (empty for a bare model), ``key`` the id of the turn. ``history`` are the exchanges before
    the prompt: sent with the request to a bare model, stored by a service.
    """

    session: str
    identity: str
    key: str
    prompt: str
    history: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that a provider produced, whether or not it arrived."""

    session: str
    identity: str
    key: str
    text: str


class ProviderLedger:
    """The requests to all providers of one world, their answers, and their faults."""

    __slots__ = ("answers", "faults", "requests")

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = []
        self.faults = ProviderFaults()
