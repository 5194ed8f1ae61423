"""A simulated bare model: it remembers nothing, and sees the whole conversation each time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from crash_tests.rig.answering import Brain, answer
from crash_tests.rig.provider_ledger import Asked, ProviderLedger
from system.ports import Opening, Tools


class SimulatedModel:
    """Answers with ``brain``; what is needed of it is ``system.providers.bare.Model``."""

    def __init__(self, ledger: ProviderLedger, brain: Brain) -> None:
        self._ledger = ledger
        self._brain = brain

    def answer(self, opening: Opening, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; raises ``ProviderError``."""
        asked = Asked(opening.key, "", key, prompt, opening.history)
        return answer(self._ledger, self._brain, asked, tools, lambda _: None)
