"""The order of the events of an execution (docs/recording.md, Events).

INTENT_RECEIVED, ROUTER_DECISION, attempts with a fallback between each two, FINAL_RESPONSE.
An attempt may lack its end. The final response occurs once and is last; one that reports an
error may follow any event, because a request may fail before its first attempt. The events of an
incomplete execution are the first ones of such an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from system.recording.records.event import EventType

AFTER: Final[Mapping[str | None, tuple[EventType, ...]]] = MappingProxyType(
    {
        None: (EventType.INTENT_RECEIVED,),
        EventType.INTENT_RECEIVED: (EventType.ROUTER_DECISION,),
        EventType.ROUTER_DECISION: (EventType.AGENT_ATTEMPT_START,),
        EventType.AGENT_ATTEMPT_START: (EventType.AGENT_ATTEMPT_END, EventType.FINAL_RESPONSE),
        EventType.AGENT_ATTEMPT_END: (EventType.FALLBACK_TRIGGERED, EventType.FINAL_RESPONSE),
        EventType.FALLBACK_TRIGGERED: (EventType.AGENT_ATTEMPT_START,),
        EventType.FINAL_RESPONSE: (),
    }
)
"""The events that may follow each event, or begin an execution (None).

They are tuples, in which any value can be looked up: callers may have no type checker.
"""

EVENTS_AFTER: Final[Mapping[str | None, tuple[EventType, ...]]] = MappingProxyType(
    {
        previous: tuple(each for each in following if each is not EventType.FINAL_RESPONSE)
        for previous, following in AFTER.items()
    }
)
"""The same without the final response, which needs no earlier event if it reports an error."""


def order_problem(previous: str | None, following: str, *, failed: bool = False) -> str:
    """Return why ``following`` may not come after ``previous``; empty if it may.

    ``previous`` is None before the first event. ``failed`` allows a final response anywhere
    but after another one: it reports an error, or events before it were lost.
    """
    if following in AFTER[previous]:
        return ""
    if failed and following == EventType.FINAL_RESPONSE and previous != following:
        return ""
    if previous is None:
        return f"{following} cannot be the first event"
    return f"{following} cannot follow {previous}"


def first_problem(types: Iterable[str], *, failed: bool = False) -> str:
    """Return the first problem in the order of known events; empty if there is none."""
    previous: str | None = None
    for following in types:
        if problem := order_problem(previous, following, failed=failed):
            return problem
        previous = following
    return ""
