"""All stores of one root, made together for one boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from system.durable.activity_store import ActivityStore
from system.durable.applied import record_applied
from system.durable.back_off import MOST_ATTEMPTS
from system.durable.emitter import Emitter
from system.durable.errors import RowDamaged
from system.durable.report import ReportStore
from system.durable.schedule_store import ScheduleStore
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.table import readable_texts
from system.durable.task_store import TaskStore
from system.durable.trigger import Sessions, Trigger
from system.durable.trigger_queue import TriggerQueue
from system.durable.trigger_store import TriggerStore
from system.errors import RuntimeRefused
from system.ports import Host


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a recovery.

    ``reclaimed`` are the triggers that were CLAIMED by an earlier boot, as they are now; ``cut``
    counts pauses that were shortened. ``to_perform`` are the keys of activities that must be
    performed, ``damaged`` the damaged rows, which stay unchanged.
    """

    reclaimed: tuple[Trigger, ...]
    cut: int
    to_perform: tuple[str, ...]
    damaged: tuple[RowDamaged, ...]


class Stores:
    """The stores of ``state.db`` in boot ``epoch``.

    Their methods take a ``Transaction``, so that all changes of a turn are in one transaction.
    ``most_attempts`` is the number of claims after which a trigger is DEAD.
    """

    def __init__(
        self, host: Host, epoch: int, sessions: Sessions, most_attempts: int = MOST_ATTEMPTS
    ) -> None:
        self.sessions = sessions
        self.queue = TriggerQueue()
        self.emitter = Emitter(host.ids, sessions, self.queue)
        self.schedules = ScheduleStore(host.ids, host.zones, sessions, self.emitter)
        self.tasks = TaskStore(self.emitter)
        self.reports = ReportStore(epoch, sessions)
        self.activities = ActivityStore(epoch, self.reports)
        self.triggers = TriggerStore(
            host.ids, epoch, self.emitter, self.queue, self.schedules, self.tasks, self.reports,
            most_attempts,
        )  # fmt: skip

    def apply(self, transaction: Transaction, outbox: StateOutbox) -> bool:
        """Apply the outbox of a durable line; return False if that was done before.

        Its trigger is settled first, so that the turn can emit a successor with the same key.
        An entry that can no longer be applied, because its session has ended or its row is
        damaged, is dropped; the others are applied. Raises ``RowDamaged`` if the row of the session
        in ``applied`` is damaged.
        """
        if not record_applied(transaction, outbox.session_id, outbox.seq):
            return False
        for call in self._calls(transaction, outbox):
            with suppress(RowDamaged, RuntimeRefused):
                transaction.part(call)
        return True

    def _calls(
        self, transaction: Transaction, outbox: StateOutbox
    ) -> Iterator[Callable[[], object]]:
        """Yield the calls that apply the entries, in their order."""
        if outbox.trigger_id is not None:
            yield partial(self.triggers.settle, transaction, outbox.trigger_id)
        for trigger_id in outbox.superseded:
            yield partial(self.triggers.cancel, transaction, trigger_id)
        for schedule_id in outbox.unscheduled:
            yield partial(self.schedules.delete_own, transaction, schedule_id, outbox.session_id)
        for trigger_id, spec in outbox.emitted:
            yield partial(self.emitter.emit, transaction, spec, trigger_id)
        for schedule_id, schedule in outbox.scheduled:
            if schedule_id in outbox.unscheduled:
                continue
            yield partial(self.schedules.create, transaction, schedule, schedule_id)
        for checkpoint in outbox.checkpoints:
            yield partial(self.tasks.checkpoint, transaction, checkpoint)
        for intent in outbox.intents:
            yield partial(self.activities.intend, transaction, intent)

    def recover(
        self, transaction: Transaction, is_served: Callable[[str | None], bool]
    ) -> Recovered:
        """Give back or end interrupted work after a crash, when all outboxes are applied.

        Claims of sessions that cannot be read stay unchanged. A second call changes nothing.
        """
        reclaimed = self.triggers.reclaim(
            transaction, lambda trigger: is_served(trigger.session_id)
        )
        cut = self.triggers.cut_pauses(transaction)
        activities = self.activities.recover(transaction)
        to_perform = tuple([each for each in activities if isinstance(each, str)])
        damaged = (
            *self.triggers.load(transaction),
            *[each for each in activities if isinstance(each, RowDamaged)],
            *self.reports.load(transaction),
        )
        return Recovered(tuple(reclaimed), cut, to_perform, damaged)

    def open_sessions(self, transaction: Transaction) -> list[str]:
        """Return the sessions that have a trigger, a schedule or a task that has not ended."""
        found = readable_texts(
            transaction,
            "SELECT CAST(session_id AS BLOB) FROM ("
            "SELECT session_id FROM triggers"
            " WHERE status<>'DONE' AND status IN ('PENDING', 'CLAIMED')"
            " UNION SELECT session_id FROM schedules WHERE ended_at IS NULL"
            " UNION SELECT session_id FROM tasks WHERE status IN ('ACTIVE', 'WAITING', 'BLOCKED')"
            ") WHERE session_id IS NOT NULL",
        )
        return [session_id for (session_id,) in found]

    def end_session(self, transaction: Transaction, session_id: str) -> None:
        """End the triggers, schedules and tasks of a session that has ended.

        Its activities are still performed: committed turns have asked for them.
        """
        self.triggers.end_session(transaction, session_id)
        self.tasks.end_session(transaction, session_id)
