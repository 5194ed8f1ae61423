"""The producers of triggers: priority, form of the key, and dedup rule of each.

A key begins with the prefix of its producer, and the prefix belongs to one source. Its last
part may contain colons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from system.durable.errors import BadTrigger, KeyOfAnotherSource
from system.durable.trigger import TriggerSource
from system.foreign import shown

DAY_S: Final = 86_400
WINDOW_S: Final = 7 * DAY_S
FREQUENCIES: Final[Mapping[str, int]] = {
    "hourly": 3_600, "daily": DAY_S, "weekly": 7 * DAY_S, "monthly": 31 * DAY_S,
}  # fmt: skip
"""The periods of proactive producers, in seconds."""

_KEY_CHARACTERS: Final = 500
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Scope(StrEnum):
    """How long a key refuses a second trigger."""

    FOREVER = "forever"
    ACTIVE = "active"
    """While its trigger is PENDING or CLAIMED."""
    WINDOW = "window"
    """Two periods of the producer, and at least seven days."""


@dataclass(frozen=True, slots=True, eq=False)
class Producer:
    """One row of the table.

    ``priority`` is the default; ``priorities`` are the lowest and the highest number, and a lower
    number comes first. ``parts`` is the number of parts of the key after the prefix. Unless
    ``keyed``, a trigger may have no key. ``routable`` triggers may have no session. With
    ``replaces``, a new trigger supersedes an older PENDING one if their keys differ only in the
    last part.
    """

    source: TriggerSource
    prefix: str
    parts: int
    priority: int
    priorities: tuple[int, int]
    scope: Scope
    keyed: bool = True
    routable: bool = False
    replaces: bool = False

    def window_s(self, key: str) -> int | None:
        """Return the seconds for which the key is taken, or None if its scope is not ``window``."""
        if self.scope is not Scope.WINDOW:
            return None
        if self.source is TriggerSource.PROACTIVE:
            return max(2 * FREQUENCIES[key.split(":")[1]], WINDOW_S)
        return WINDOW_S


_S: Final = TriggerSource
PRODUCERS: Final = (
    Producer(_S.MESSAGE, "message", 2, 3, (3, 3), Scope.WINDOW, keyed=False, routable=True),
    Producer(_S.SCHEDULED, "scheduled", 2, 30, (20, 40), Scope.FOREVER, routable=True),
    Producer(_S.SCHEDULED, "scheduled-once", 1, 30, (20, 40), Scope.FOREVER, routable=True),
    Producer(_S.SCHEDULED, "reminder", 1, 20, (20, 20), Scope.FOREVER),
    Producer(_S.IMMEDIATE, "immediate", 1, 10, (10, 10), Scope.WINDOW, keyed=False, routable=True),
    Producer(_S.MEMORY, "memory", 2, 50, (50, 60), Scope.ACTIVE, replaces=True),
    Producer(_S.PROACTIVE, "proactive", 2, 50, (50, 50), Scope.WINDOW, replaces=True),
    Producer(_S.RESUME, "resume", 1, 5, (5, 7), Scope.ACTIVE),
    Producer(_S.LIVING_UI, "living_ui", 2, 30, (30, 50), Scope.ACTIVE, replaces=True),
    Producer(_S.SKILL_WORKFLOW, "skill", 2, 60, (60, 60), Scope.FOREVER, routable=True),
    Producer(_S.ONBOARDING, "onboarding", 1, 1, (1, 1), Scope.FOREVER, routable=True),
    Producer(_S.SYSTEM, "system", 2, 1, (1, 1), Scope.WINDOW),
)
RECURRING: Final = PRODUCERS[1]
ONE_TIME: Final = PRODUCERS[2]
REMINDER: Final = PRODUCERS[3]
RESUME: Final = PRODUCERS[7]
LEGACY: Final = Producer(_S.MESSAGE, "legacy", 1, 3, (1, 60), Scope.FOREVER, routable=True)
"""The producer of imported triggers of an older program, of any source."""

_SOURCES: Final[Mapping[str, TriggerSource]] = {str(source): source for source in TriggerSource}
_BY_PREFIX: Final = {producer.prefix: producer for producer in PRODUCERS}


def source_named(name: str) -> TriggerSource:
    """Return the source of this name, or raise ``BadTrigger``."""
    try:
        return _SOURCES[name]
    except (KeyError, TypeError):
        known = ", ".join(TriggerSource)
        raise BadTrigger(f"source={shown(name, 100)} is none of {known}") from None


def producer_of(source: TriggerSource, key: str | None) -> Producer:
    """Return the producer of a trigger; raises ``BadTrigger`` or ``KeyOfAnotherSource``."""
    if key is None:
        for producer in PRODUCERS:
            if producer.source is source and not producer.keyed:
                return producer
        raise BadTrigger(f"a trigger of source={source} needs a key")
    if type(key) is not str or len(key) > _KEY_CHARACTERS or _CONTROL.search(key):
        raise BadTrigger(
            f"key={shown(key, 200)} is not a text of up to {_KEY_CHARACTERS} characters"
        )
    prefix, _, others = key.partition(":")
    found = _BY_PREFIX.get(prefix)
    if found is None:
        raise BadTrigger(f"key={key!r:.200} has the prefix of no producer")
    if found.source is not source:
        raise KeyOfAnotherSource(key, source, found.source)
    parts = others.split(":", found.parts - 1)
    if len(parts) < found.parts or "" in parts:
        raise BadTrigger(f"key={key!r:.200} has not parts={found.parts} behind its prefix")
    if source is TriggerSource.PROACTIVE and parts[0] not in FREQUENCIES:
        known = ", ".join(FREQUENCIES)
        raise BadTrigger(f"key={key!r:.200} has a frequency that is none of {known}")
    return found


def priority_of(producer: Producer, priority: int | None) -> int:
    """Return the priority of a trigger; raises ``BadTrigger`` if its producer does not allow it."""
    if priority is None:
        return producer.priority
    lowest, highest = producer.priorities
    if type(priority) is not int or not lowest <= priority <= highest:
        raise BadTrigger(
            f"priority={shown(priority, 20)} is not from {lowest} to {highest},"
            f" as {producer.source} has it"
        )
    return priority


def family_of(key: str) -> str:
    """Return a key without its last part: keys of one family replace each other."""
    return key.rpartition(":")[0] + ":"
