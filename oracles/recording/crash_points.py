"""Where an interrupted execution stopped (docs/recording.md, Interrupted executions)."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from oracles.recording.record_reader import ObservedRecord

_BY_TYPE: Final = {
    "INTENT_RECEIVED": ("after_receive", "safe_to_retry"),
    "ROUTER_DECISION": ("after_routing", "safe_to_retry"),
    "AGENT_ATTEMPT_START": ("during_agent_execution", "check_agent_idempotency"),
    "FALLBACK_TRIGGERED": ("during_fallback", "retry_next_agent"),
    "FINAL_RESPONSE": ("after_final_response", "replay"),
}
_CONFIRMED: Final = frozenset(
    ("during_agent_execution", "after_success", "after_failure", "during_fallback")
)
STAGES: Final = (
    "before_start",
    "after_receive",
    "after_routing",
    "during_agent_execution",
    "after_success",
    "after_failure",
    "during_fallback",
)
"""The stages at which an execution without a final response can be."""


class ExpectedPoint(NamedTuple):
    """Stage, recovery and action of an interrupted execution."""

    stage: str
    recovery: str
    action: str


def expected_point(record: ObservedRecord) -> ExpectedPoint:
    """Return the stage of the last event of a record, and its consequences."""
    stage, recovery = _stage(record)
    action = "retry"
    if stage == "after_final_response":
        action = "none"
    elif stage == "unknown" or (stage in _CONFIRMED and record.side_effects == "IRREVERSIBLE"):
        action = "confirm"
    return ExpectedPoint(stage, recovery, action)


def _stage(record: ObservedRecord) -> tuple[str, str]:
    if not record.events:
        return "before_start", "safe_to_retry"
    last = record.events[-1]
    if last.type == "AGENT_ATTEMPT_END":
        if json.loads(last.payload).get("status") == "success":
            return "after_success", "response_may_be_lost"
        return "after_failure", "retry_next_agent"
    return _BY_TYPE.get(last.type, ("unknown", "manual_inspection"))
