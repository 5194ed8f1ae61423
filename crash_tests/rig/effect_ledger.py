"""The effects of irreversible actions in the outside world, which survive every crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from oracles.durable.violations import WrongOutcome
from oracles.violation import Violation
from system.ports import Action, EffectRefused, Json, JsonObject, Performed, SideEffectClass

SECOND_NS: Final = 10**9
MAIL: Final = Action(
    "mail", SideEffectClass.IRREVERSIBLE, provider_dedup=False, timeout_ns=10 * SECOND_NS
)
PAY: Final = Action(
    "pay", SideEffectClass.IRREVERSIBLE, provider_dedup=True, timeout_ns=10 * SECOND_NS
)
ACTIONS: Final = {action.name: action for action in (MAIL, PAY)}
DEDUP_WINDOW_NS: Final = 25 * 3_600 * SECOND_NS
"""The nanoseconds within which the provider of ``pay`` performs a repeated key only once."""


class Answer(StrEnum):
    """The answer to one request."""

    PERFORMED = "performed"
    LOST = "lost"
    """It is performed, and the answer does not arrive."""
    TIMEOUT = "timeout"
    """It is performed, and never answered."""
    BROKEN = "broken"
    """It is not performed, and the caller cannot know that."""
    REFUSED = "refused"


class EffectLedger:
    """The effects and requests of each key; implements ``system.ports.Effects``.

    ``answers`` are the answers to the next requests; all later requests are PERFORMED.
    ``on_request`` is called once, at the next request, before it is answered.
    ``now_ns`` is the time of the outside world. With ``remembers`` the provider recognises
    every key for ever.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.effects: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.doubted: set[str] = set()
        self.refused: set[str] = set()
        self.unanswered: set[str] = set()
        self.answers: list[Answer] = []
        self.on_request: Callable[[], object] | None = None
        self.remembers = False
        self._now_ns = now_ns
        self._first_ns: dict[str, int] = {}
        self._violation: Violation | None = None
        self._arguments: dict[str, Json] = {}

    def actions(self) -> Sequence[Action]:
        """Return an action whose provider deduplicates, and one whose does not."""
        return list(ACTIONS.values())

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        """Perform an action, and give the planned answer."""
        self.requests[key] += 1
        if self.on_request is not None:
            self.on_request()
            self.on_request = None
        answer = self.answers.pop(0) if self.answers else Answer.PERFORMED
        await asyncio.sleep(0)
        if answer is Answer.REFUSED and not self.effects[key]:
            self.refused.add(key)
            raise EffectRefused("the provider has refused it")
        if answer is not Answer.BROKEN:
            self._perform(action, key, arguments)
        if answer is not Answer.PERFORMED:
            self.doubted.add(key)
        else:
            self.unanswered.add(key)
        if answer is Answer.TIMEOUT:
            await asyncio.Event().wait()
        if answer in (Answer.LOST, Answer.BROKEN):
            raise ConnectionResetError("the connection was reset")
        await asyncio.sleep(0)
        return Performed(f"ref-{key}", dict(arguments))

    def check(self) -> None:
        """Raise the violation of an earlier request, if any: the caller may have caught it."""
        if self._violation is not None:
            raise self._violation

    def _perform(self, action: str, key: str, arguments: JsonObject) -> None:
        if self._arguments.setdefault(key, arguments) != arguments:
            self._violation = WrongOutcome(
                "a key was sent with other arguments", key=key, arguments=arguments
            )
        first_ns = self._first_ns.get(key)
        is_recent = first_ns is not None and self._now_ns() - first_ns < DEDUP_WINDOW_NS
        is_known = is_recent or (first_ns is not None and self.remembers)
        if not (ACTIONS[action].provider_dedup and is_known):
            self.effects[key] += 1
            self._first_ns[key] = self._now_ns()
