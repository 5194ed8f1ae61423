"""The outbox of a turn, for ``state.db``."""

from __future__ import annotations

from dataclasses import dataclass

from system.durable.activity import Intent
from system.durable.schedule import ScheduleSpec
from system.durable.task import Checkpoint
from system.durable.trigger import TriggerSpec


@dataclass(frozen=True, slots=True)
class StateOutbox:
    """The outbox entries for ``state.db`` that the line ``seq`` of a session has.

    ``trigger_id`` is the trigger that the turn has handled. ``emitted`` are new triggers with
    their ids, which were created in the turn; ``superseded`` are the ids of cancelled triggers.
    ``scheduled`` and ``unscheduled`` are the same for schedules.
    """

    session_id: str
    seq: int
    trigger_id: str | None = None
    superseded: tuple[str, ...] = ()
    emitted: tuple[tuple[str, TriggerSpec], ...] = ()
    scheduled: tuple[tuple[str, ScheduleSpec], ...] = ()
    unscheduled: tuple[str, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    intents: tuple[Intent, ...] = ()
