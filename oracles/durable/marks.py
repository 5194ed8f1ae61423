"""The sometimes-marks of durable execution."""

from __future__ import annotations

from typing import Final

RECLAIMED: Final = "a claim was reclaimed at a boot"
DEAD_BY_RECLAIM: Final = "a trigger became DEAD at a boot"
DEAD_BY_FAILURE: Final = "a trigger became DEAD by a failure"
FENCED_OFF: Final = "a stale claim was refused"
KEY_HELD: Final = "a key refused a second trigger"
KEY_FREE_AGAIN: Final = "a key was used again after its scope had ended"
SUPERSEDED: Final = "a trigger was superseded by a newer one"
OCCURRENCES_MISSED: Final = "an outage has passed over occurrences"
OCCURRENCE_SKIPPED: Final = "a late occurrence was skipped"
SCHEDULE_CHANGED: Final = "a schedule that had fired was changed"
ROUTED: Final = "a trigger was routed to a session"
ROUTED_AGAIN: Final = "the session of a routed trigger ended before its turn"
SESSION_ENDED: Final = "a session has ended"
ACK_REDONE: Final = "the outbox of a line was applied after a crash"
LINE_NOT_REPEATED: Final = "the outbox of a line was not applied twice"
PAUSE_CUT: Final = "a pause of a wrong clock was cut"
TASK_RESUMED: Final = "a boot resumed a task"
TASK_BLOCKED: Final = "a task was blocked"
COLLECTED: Final = "settled triggers were removed"
STOPPED: Final = "a failed commit stopped the database"
UNCERTAIN: Final = "an activity became UNCERTAIN"
CRASHED_EFFECT: Final = "a crash came between an effect and its record"
REPEATED_KEY: Final = "a provider was given the same key again"
DECIDED: Final = "a person decided about an activity"

DURABLE_MARKS: Final = (
    RECLAIMED, DEAD_BY_RECLAIM, DEAD_BY_FAILURE, FENCED_OFF, KEY_HELD, KEY_FREE_AGAIN,
    SUPERSEDED, OCCURRENCES_MISSED, OCCURRENCE_SKIPPED, SCHEDULE_CHANGED, ROUTED, ROUTED_AGAIN,
    SESSION_ENDED, ACK_REDONE, LINE_NOT_REPEATED, PAUSE_CUT, TASK_RESUMED,
    TASK_BLOCKED, COLLECTED, STOPPED, UNCERTAIN, CRASHED_EFFECT, REPEATED_KEY, DECIDED,
)  # fmt: skip

RARE_DURABLE_MARKS: Final = (
    DEAD_BY_FAILURE, FENCED_OFF, KEY_FREE_AGAIN, OCCURRENCES_MISSED, OCCURRENCE_SKIPPED,
    SCHEDULE_CHANGED, ROUTED_AGAIN, PAUSE_CUT, TASK_RESUMED, TASK_BLOCKED, COLLECTED,
    CRASHED_EFFECT, DECIDED,
)  # fmt: skip
"""Marks that a campaign of one minute over all targets may miss."""
