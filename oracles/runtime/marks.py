"""The sometimes-marks of the agent runtime, read from the files that a run leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from oracles.durable.marks import (
    ACK_REDONE,
    CRASHED_EFFECT,
    DEAD_BY_RECLAIM,
    DECIDED,
    OCCURRENCES_MISSED,
    REPEATED_KEY,
    ROUTED,
    SUPERSEDED,
    TASK_BLOCKED,
    TASK_RESUMED,
    UNCERTAIN,
)
from oracles.marks import ACTIVE_SUSPENDED, STOPPED_BY_SYNC, TORN_TAIL_TRUNCATED
from oracles.runtime.log_records import MessageRecord
from oracles.runtime.root_snapshot import RootSnapshot

NESTED_CRASH_WITH_AGENTS: Final = "a crash during the recovery of agents"
REDELIVERED: Final = "a message was presented again"
DEAD_LETTER: Final = "a message was presented too often and became dead"
DEAD_OUTCOME: Final = "an outcome was presented too often, and USER got an error about it"
BOUNCED: Final = "a message to an ended agent was answered by an error"
SPAWN_REDONE: Final = "recovery created a child of a committed turn"
OUTBOX_REDONE: Final = "recovery enqueued a message of a committed turn"
CONTROL_REDONE: Final = "recovery applied a gate, an ungate or a permit"
NOTICE_REDONE: Final = "recovery sent a notice to a subscriber"
TERMINATION_FINISHED: Final = "recovery finished a termination"
ORPHAN_REMOVED: Final = "recovery removed an orphan"
LOST_TURN_REPORTED: Final = "a recovery notice named a lost turn"
PERMITTED_TURN: Final = "a gated agent ran a permitted turn"
REMINDER_AFTER_CRASH: Final = "a reminder was enqueued after a crash"
STOPPED_SESSION_BACK: Final = "a session stopped by a failed barrier ran again"
PROVIDER_FAULT: Final = "an injected fault of a provider fired"
CALL_GIVEN_UP: Final = "the operator abandoned a call that went on"

RARE_MARKS: Final = (
    DEAD_LETTER,
    BOUNCED,
    CONTROL_REDONE,
    NOTICE_REDONE,
    PERMITTED_TURN,
    STOPPED_SESSION_BACK,
    TORN_TAIL_TRUNCATED,
)
RUNTIME_MARKS: Final = (
    NESTED_CRASH_WITH_AGENTS,
    ACTIVE_SUSPENDED,
    STOPPED_BY_SYNC,
    REDELIVERED,
    SPAWN_REDONE,
    OUTBOX_REDONE,
    TERMINATION_FINISHED,
    ORPHAN_REMOVED,
    LOST_TURN_REPORTED,
    REMINDER_AFTER_CRASH,
    PROVIDER_FAULT,
    CALL_GIVEN_UP,
    *RARE_MARKS,
)
"""The marks of a campaign of the whole runtime; a short one may miss the rare ones."""

SNAPSHOT_TAKEN: Final = "a log began a new segment with a snapshot"
SNAPSHOT_UNFINISHED: Final = "a crash left a new segment under its temporary name"
SNAPSHOT_ALONE: Final = "a crash left a segment with nothing but its snapshot"
SEVERAL_SNAPSHOTS: Final = "a log began a second new segment"

SNAPSHOT_MARKS: Final = (SNAPSHOT_TAKEN, SNAPSHOT_UNFINISHED, SNAPSHOT_ALONE, SEVERAL_SNAPSHOTS)
"""The marks of a campaign whose logs begin new segments."""

COLLECTED: Final = "an agent that had ended was collected"
COLLECTION_FINISHED: Final = "recovery removed the directory of a collected agent"
COLLECTION_LOST: Final = "a crash left an archive of an agent that was not collected"

TRIGGER_RECLAIMED: Final = "recovery gave back a trigger whose turn a crash had interrupted"
TRIGGER_AFTER_CRASH: Final = "a trigger was settled in a run with crashes"
TRIGGER_MARKS: Final = (TRIGGER_RECLAIMED, TRIGGER_AFTER_CRASH)
"""The marks of a campaign in which triggers are emitted."""
RARE_WORK_MARKS: Final = (OCCURRENCES_MISSED, TASK_BLOCKED, DEAD_OUTCOME)
WORK_MARKS: Final = (
    ACK_REDONE, DEAD_BY_RECLAIM, ROUTED, SUPERSEDED, TASK_RESUMED, CRASHED_EFFECT, DECIDED,
    REPEATED_KEY, UNCERTAIN, *RARE_WORK_MARKS,
)  # fmt: skip
"""The marks of a campaign whose agents work durably, as those of ``state.db`` by itself."""
COLLECTION_MARKS: Final = (COLLECTED, COLLECTION_FINISHED, COLLECTION_LOST)
"""The marks of a campaign in which agents are collected."""

_SEGMENT_TEMPORARY: Final = re.compile(r".*/events\.[0-9]+\.jsonl\.tmp\.[0-9a-f]{8}")
_ENQUEUED_BY_RECOVERY: Final = {
    "error": BOUNCED,
    "notice": NOTICE_REDONE,
    "system": LOST_TURN_REPORTED,
    "reminder": REMINDER_AFTER_CRASH,
    "bootstrap": SPAWN_REDONE,
}


def marks_of_recovery(image: RootSnapshot, recovered: RootSnapshot) -> tuple[str, ...]:
    """Return the marks of a recovery that found ``image`` and left ``recovered``."""
    return tuple(dict.fromkeys(_recovery(image, recovered)))


def _recovery(image: RootSnapshot, recovered: RootSnapshot) -> Iterator[str]:
    yield from _segments_and_archives(image, recovered)
    for after in recovered.agents.values():
        before = image.agents.get(after.agent_id)
        if before is None:
            yield SPAWN_REDONE
            continue
        if after.finished and not before.finished:
            yield TERMINATION_FINISHED
        if len(after.applied_controls) > len(before.applied_controls):
            yield CONTROL_REDONE
        for key, message in after.enqueued.items():
            if key not in before.enqueued:
                yield _ENQUEUED_BY_RECOVERY.get(message.kind, OUTBOX_REDONE)
    if image.sessions.keys() - recovered.sessions.keys():
        yield ORPHAN_REMOVED
    if recovered.user.enqueued.keys() - image.user.enqueued.keys():
        yield OUTBOX_REDONE


def _segments_and_archives(image: RootSnapshot, recovered: RootSnapshot) -> Iterator[str]:
    """Yield the marks of segments and of collection."""
    if any(map(_SEGMENT_TEMPORARY.fullmatch, image.files)):
        yield SNAPSHOT_UNFINISHED
    for state in (image.user, *image.agents.values()):
        if state.segment_seq == len(state.log.lines) > 1:
            yield SNAPSHOT_ALONE
    if recovered.collected - image.collected:
        yield COLLECTION_FINISHED
    if any(f"archive/{session_id}.jsonl" in image.files for session_id in _present(recovered)):
        yield COLLECTION_LOST


def _present(snapshot: RootSnapshot) -> list[str]:
    """Return the sessions that are not only in the archive."""
    return [each for each in snapshot.sessions if each not in snapshot.collected]


def marks_of_run(snapshot: RootSnapshot) -> tuple[str, ...]:
    """Return the marks that the logs at the end of a run show."""
    return tuple(dict.fromkeys(_run(snapshot)))


def _run(snapshot: RootSnapshot) -> Iterator[str]:
    if snapshot.collected:
        yield COLLECTED
    for state in (snapshot.user, *snapshot.agents.values()):
        if state.segment_seq > 1:
            yield SNAPSHOT_TAKEN
        if state.path.replace(".jsonl", ".2.jsonl") in snapshot.files:
            yield SEVERAL_SNAPSHOTS
    for state in snapshot.agents.values():
        if any(count > 1 for count in state.presentations.values()):
            yield REDELIVERED
        if state.dead:
            yield DEAD_LETTER
        if any(state.enqueued[key].kind == "activity" for key in state.dead):
            yield DEAD_OUTCOME
        if any(turn.permitted for turn in state.turns.values()):
            yield PERMITTED_TURN
        if any(_is_bounce(snapshot, message) for message in state.enqueued.values()):
            yield BOUNCED


def _is_bounce(snapshot: RootSnapshot, message: MessageRecord) -> bool:
    target = snapshot.agents.get(message.sender)
    return message.kind == "error" and target is not None and message.reply_to not in target.dead
