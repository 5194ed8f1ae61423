"""Events: the names of the lines in a session's log; ``docs/file-formats.md`` has their data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from system.ports import Json, JsonObject
from system.storage import segments

SESSION_CREATED: Final = "session.created"
SESSION_RESTORED: Final = "session.restored"
AGENT_CREATED: Final = "agent.created"
AGENT_TERMINATED: Final = "agent.terminated"
TURN_START: Final = "turn.start"
TURN_COMPLETE: Final = "turn.complete"
TURN_DISPATCHED: Final = "turn.dispatched"
TURN_FAILED: Final = "turn.failed"
LOG_SNAPSHOT: Final = segments.SNAPSHOT
MESSAGE_ENQUEUED: Final = "message.enqueued"
MESSAGE_DELIVERED: Final = "message.delivered"
MESSAGE_DEAD: Final = "message.dead"
SUSPEND_RESULT: Final = "suspend.result"
GATE: Final = "tool.gate"
UNGATE: Final = "tool.ungate"
PERMIT_TURN: Final = "tool.permit_turn"


def terminated(agent_id: str, reason: str, returned: Sequence[str] = ()) -> tuple[str, JsonObject]:
    """Return the line of an agent's end; ``returned`` are the ids of unread messages."""
    return AGENT_TERMINATED, {
        "agent_id": agent_id, "reason": reason, "returned": list[Json](returned),
    }  # fmt: skip
