"""Which sometimes-marks a recovery, or a log, has reached: seen in the files, never intended."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.marks import Mark
from oracles.runtime.fact import Message
from oracles.runtime.fold import Fold
from oracles.runtime.seen import Seen


def marks_of_recovery(image: Seen, recovered: Seen) -> tuple[Mark, ...]:
    """Return what a recovery did: ``image`` is what the boot found, ``recovered`` what it left."""
    reached = set(_of_agents(image, recovered))
    if image.sessions.keys() - recovered.sessions.keys():
        reached.add(Mark.ORPHAN_REMOVED)
    known = image.user.enqueued
    if any(key not in known for key in recovered.user.enqueued):
        reached.add(Mark.OUTBOX_REDONE)
    return tuple(mark for mark in Mark if mark in reached)


def _of_agents(image: Seen, recovered: Seen) -> Iterator[Mark]:
    for fold in recovered.agents.values():
        before = image.agents.get(fold.agent_id)
        if before is None:
            yield Mark.SPAWN_REDONE
            continue
        if fold.finished and not before.finished:
            yield Mark.TERMINATION_FINISHED
        if len(fold.obeyed) > len(before.obeyed):
            yield Mark.CONTROL_REDONE
        yield from _of_messages(before, fold)


def _of_messages(before: Fold, after: Fold) -> Iterator[Mark]:
    for key, message in after.enqueued.items():
        if key not in before.enqueued:
            yield {
                "error": Mark.BOUNCED,
                "notice": Mark.NOTICE_REDONE,
                "system": Mark.LOST_TURN_TOLD,
                "reminder": Mark.REMINDER_AFTER_CRASH,
                "bootstrap": Mark.SPAWN_REDONE,
            }.get(message.kind, Mark.OUTBOX_REDONE)


def _is_bounce(seen: Seen, message: Message) -> bool:
    target = seen.agents.get(message.sender)
    return message.kind == "error" and target is not None and message.reply_to not in target.dead


def marks_of_run(seen: Seen) -> tuple[Mark, ...]:
    """Return what the logs at the end of a run tell of it."""
    reached: set[Mark] = set()
    for fold in seen.agents.values():
        if any(count > 1 for count in fold.presentations.values()):
            reached.add(Mark.REDELIVERED)
        if fold.dead:
            reached.add(Mark.DEAD_LETTER)
        if any(turn.permitted for turn in fold.turns.values()):
            reached.add(Mark.PERMITTED_TURN)
        if any(_is_bounce(seen, message) for message in fold.enqueued.values()):
            reached.add(Mark.BOUNCED)
    return tuple(mark for mark in Mark if mark in reached)
