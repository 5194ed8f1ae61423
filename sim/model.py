"""A simulated bare model: it remembers nothing, and sees the whole conversation each time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sim.answering import Brain, answer
from sim.outside import Asked, Outside
from system.ports import Opening, Tools


class SimulatedModel:
    """Answers with ``brain``; what is needed of it is ``system.providers.bare.Model``."""

    def __init__(self, outside: Outside, brain: Brain) -> None:
        self._outside = outside
        self._brain = brain

    def answer(self, opening: Opening, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; raises ``ProviderError``."""
        asked = Asked(opening.key, "", key, prompt, opening.history)
        return answer(self._outside, self._brain, asked, tools, lambda _: None)
