"""The types of the members of lines, by their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

Is = Callable[[Any], bool]


def matching(pattern: str) -> Is:
    return lambda value: type(value) is str and re.fullmatch(pattern, value) is not None


def several(kind: Is) -> Is:
    return lambda value: type(value) is list and all(kind(item) for item in value)


TEXT: Final = matching(r"(?s).*")
UUID: Final = matching("[0-9a-f]{32}")
MESSAGE_ID: Final = matching(
    r"[0-9a-f]{32}(\.(error|notice|lost|dead))?|activity:.+\.(result|decided|uncertain)"
)
MOMENT: Final = matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
ADDRESS: Final = matching("[0-9a-f]{32}|USER|RUNTIME")


def number(value: object) -> bool:
    return type(value) is int and value >= 0


def truth(value: object) -> bool:
    return type(value) is bool


def plain_object(value: object) -> bool:
    return type(value) is dict


def anything(_value: object) -> bool:
    return True


TYPES: Final[dict[str, Is]] = {
    **dict.fromkeys(("provider", "model", "system_prompt", "identity", "name"), TEXT),
    **dict.fromkeys(("instructions", "prompt", "response", "reason", "kind"), TEXT),
    **dict.fromkeys(("agent_id", "session_id", "turn_id", "target", "control_id", "by"), UUID),
    **dict.fromkeys(("subscription_id", "reminder_id", "parent_session_id"), UUID),
    **dict.fromkeys(("message_id", "bootstrap_id", "reply_to"), MESSAGE_ID),
    **dict.fromkeys(("presented", "returned"), several(MESSAGE_ID)),
    **dict.fromkeys(("unsubscribed", "cancelled", "unscheduled"), several(UUID)),
    **dict.fromkeys(
        ("activities", "tasks", "emitted", "scheduled", "events"), several(plain_object)
    ),
    "task_id": lambda value: value is None or UUID(value),
    "schedule_id": UUID,
    **dict.fromkeys(("action", "status", "source", "spec", "zone", "catch_up"), TEXT),
    **dict.fromkeys(("key", "description"), lambda value: value is None or TEXT(value)),
    "fire_at": lambda value: type(value) is float,
    "priority": lambda value: value is None or type(value) is int,
    **dict.fromkeys(("arguments",), plain_object),
    "todos": anything,
    "last_seq": number,
    **dict.fromkeys(("sender", "recipient"), ADDRESS),
    **dict.fromkeys(("terminate", "permitted", "sampled_out", "gated", "known_ids"), truth),
    **dict.fromkeys(
        ["pending", "open_turns", "reminders", "promises", "children", "unreachable"],
        several(plain_object),
    ),
    **dict.fromkeys(
        ["presentations", "subscriptions", "dispatched_of", "session", "agent"], plain_object
    ),
    **dict.fromkeys(("last_turns", "completed_children", "controls"), several(UUID)),
    **dict.fromkeys(("ids", "from_user"), several(MESSAGE_ID)),
    "senders": several(ADDRESS),
    "trigger_id": UUID,
    "retry_of": lambda value: value is None or TEXT(value),
    "execution_id": matching("exec-[0-9a-f]{16}"),
    "execution_entry": number,
    **dict.fromkeys(
        ("due_ns", "state_size", "dispatched", "applied", "format", "turn_count", "permits"), number
    ),
    "op": matching("gate|ungate|permit_turn"),
    "timestamp": MOMENT,
    "metadata": plain_object,
    "payload": anything,
    # The child of an agent has no request id.
    "request_id": lambda value: value is None or TEXT(value),
}
