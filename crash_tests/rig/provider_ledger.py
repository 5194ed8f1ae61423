"""The world outside of the machine: it survives every crash, and remembers what it was asked."""

from __future__ import annotations

from dataclasses import dataclass

from crash_tests.rig.provider_faults import ProviderFaults
from system.ports import Exchange


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to a provider, as it arrived there.

    ``session`` is the key of the opening, ``identity`` the conversation's own name (empty
    for a bare model), ``key`` the turn's id. ``history`` is what stood before the prompt:
    sent along to a bare model, remembered by a service.
    """

    session: str
    identity: str
    key: str
    prompt: str
    history: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer that a provider produced, whether or not it arrived."""

    session: str
    identity: str
    key: str
    text: str


class ProviderLedger:
    """The ledger of all providers of one world, and their faults."""

    __slots__ = ("answered", "asked", "faults")

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answered: list[Answered] = []
        self.faults = ProviderFaults()
