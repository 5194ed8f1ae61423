"""The triggers of a root: claimed by one turn at a time, and settled once.

``attempts`` is counted durably when a trigger is claimed, before it is handled. So attempts that
kill the process are counted too, and such a trigger becomes DEAD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from system.durable.back_off import LONGEST_PAUSE_NS, MOST_ATTEMPTS, pause_ns
from system.durable.dedup import give_key, holder_of, release_keys
from system.durable.emitter import Emitter, done
from system.durable.errors import AlreadyDecided, BadSchedule, FencedOff, RowDamaged, UnknownTrigger
from system.durable.producers import REMINDER, RESUME, producer_of
from system.durable.report import ReportStore
from system.durable.schedule import schedule_id_of
from system.durable.schedule_store import ScheduleStore
from system.durable.seconds import SECOND_NS, nanoseconds_of, reached_at, seconds_of
from system.durable.state import Transaction
from system.durable.task_store import TaskStore
from system.durable.trigger import (
    NOT_DONE,
    SESSION_INDEX,
    TRIGGERS,
    UNDECIDED,
    Claim,
    Resolution,
    Trigger,
    TriggerSource,
    TriggerStatus,
)
from system.durable.trigger_queue import TriggerQueue
from system.foreign import reason_of
from system.ports import Ids, JsonObject

LEASE_NS: Final = 720 * SECOND_NS
"""The timeout of a turn plus twice that of a provider, in nanoseconds."""


class TriggerStore:
    """Claims and settles triggers in the boot ``epoch``.

    ``emitter``, ``queue``, ``schedules``, ``tasks`` and ``reports`` are those of the same root.
    """

    def __init__(
        self, ids: Ids, epoch: int, emitter: Emitter, queue: TriggerQueue,
        schedules: ScheduleStore, tasks: TaskStore, reports: ReportStore,
        most_attempts: int = MOST_ATTEMPTS,
    ) -> None:  # fmt: skip
        self._ids = ids
        self._epoch = epoch
        self._emitter = emitter
        self._queue = queue
        self._schedules = schedules
        self._tasks = tasks
        self._reports = reports
        self._most_attempts = most_attempts

    # -- a turn --------------------------------------------------------------------------

    def claim(self, transaction: Transaction, trigger_id: str) -> Claim | None:
        """Give a due trigger to a turn that holds its slot, and count the attempt.

        Returns None if the trigger is not PENDING, not due, or an occurrence that its schedule
        skips. The next occurrence is emitted in the same transaction; if it cannot be computed, the
        trigger is FAILED. Raises ``RowDamaged``; then the trigger is not run, and is removed from
        the queue.
        """
        trigger = self._read_waiting(transaction, trigger_id)
        if trigger is None or trigger.due_at > reached_at(transaction.now_ns):
            return None
        try:
            occurrence = self._schedules.follow(transaction, trigger)
        except BadSchedule as bad:
            self._stop(transaction, trigger, TriggerStatus.FAILED, reason_of(bad))
            self._schedules.give_up(transaction, trigger, reason_of(bad))
            return None
        if occurrence.skipped:
            self._settle(transaction, trigger, Resolution.SKIPPED)
            return None
        now_ns = transaction.now_ns
        claimed = trigger._replace(
            status=TriggerStatus.CLAIMED, attempts=trigger.attempts + 1,
            fence=trigger.fence + 1, epoch=self._epoch, missed=occurrence.missed,
            lease_until=seconds_of(now_ns + LEASE_NS), updated_at=transaction.now,
        )  # fmt: skip
        TRIGGERS.update(transaction, claimed)
        transaction.after_commit(lambda: self._queue.remove(trigger_id))
        return Claim(claimed, max(0, now_ns - nanoseconds_of(trigger.fire_at)))

    def ack(self, transaction: Transaction, claim: Claim) -> None:
        """Settle a claimed trigger; raises ``FencedOff`` or ``RowDamaged``."""
        self._settle(transaction, self._held(transaction, claim), Resolution.HANDLED)

    def fail(
        self, transaction: Transaction, claim: Claim, reason: str, *, retryable: bool = True
    ) -> TriggerStatus:
        """Give a claimed trigger back after a pause; return its status.

        Its status is DEAD after too many attempts, and FAILED if it is not ``retryable``. Raises
        ``FencedOff`` or ``RowDamaged``.
        """
        trigger = self._held(transaction, claim)
        if not retryable:
            return self._stop(transaction, trigger, TriggerStatus.FAILED, reason)
        if trigger.attempts >= self._most_attempts:
            return self._stop(transaction, trigger, TriggerStatus.DEAD, reason)
        not_before = seconds_of(transaction.now_ns + pause_ns(self._ids, trigger.attempts))
        waiting = trigger._replace(not_before=not_before, reason=reason)
        return self._wait(transaction, waiting)

    def give_back(self, transaction: Transaction, claim: Claim) -> None:
        """Give a trigger back without counting the attempt, because the disk refused the turn.

        Raises ``FencedOff`` or ``RowDamaged``.
        """
        trigger = self._held(transaction, claim)
        self._wait(transaction, trigger._replace(attempts=trigger.attempts - 1))

    def route(self, transaction: Transaction, claim: Claim, session_id: str) -> None:
        """Give a claimed trigger a session, and make it PENDING as if it had not been claimed.

        Raises ``FencedOff`` or ``RowDamaged``.
        """
        trigger = self._held(transaction, claim)
        assert trigger.session_id is None
        self._wait(transaction, trigger._replace(session_id=session_id, routed=True, attempts=0))

    # -- recovery ------------------------------------------------------------------------

    def load(self, transaction: Transaction) -> list[RowDamaged]:
        """Fill the queue with the PENDING triggers; return the damaged rows, which are not run.

        Rows that are DONE are not read.
        """
        damaged = []
        for number, trigger in TRIGGERS.select(transaction, NOT_DONE, index=SESSION_INDEX):
            if isinstance(trigger, RowDamaged):
                damaged.append(trigger)
            elif trigger.status is TriggerStatus.PENDING:
                self._queue.add(trigger, number)
        return damaged

    def open_rows(self, transaction: Transaction) -> list[Trigger | RowDamaged]:
        """Return the triggers that are not DONE, by the time at which they are due."""
        rows = TRIGGERS.select(
            transaction, f"{NOT_DONE} ORDER BY due_at, rowid", index=SESSION_INDEX
        )
        return [trigger for _, trigger in rows]

    def settle(self, transaction: Transaction, trigger_id: str) -> None:
        """Settle a trigger that a durable line names, whatever its status is.

        A row that was removed, or is DONE, is not changed. Raises ``RowDamaged``.
        """
        self._settle_open(transaction, trigger_id, Resolution.HANDLED)

    def reclaim(
        self, transaction: Transaction, is_lost: Callable[[Trigger], bool] = lambda _: True
    ) -> list[Trigger]:
        """Make CLAIMED triggers without a turn PENDING or DEAD; return them as they are now.

        ``is_lost`` says whether a claim has no turn: at a boot, if its session can be read. The
        attempts are compared with the limit, and not counted again.
        """
        reclaimed = []
        for _, trigger in TRIGGERS.select(
            transaction, f"{NOT_DONE} AND status='CLAIMED' ORDER BY rowid", index=SESSION_INDEX
        ):
            if isinstance(trigger, RowDamaged) or not is_lost(trigger):
                continue
            if trigger.attempts >= self._most_attempts:
                self._stop(
                    transaction, trigger, TriggerStatus.DEAD,
                    f"its turn has ended without a result, attempts={trigger.attempts}",
                )  # fmt: skip
            else:
                self._wait(transaction, trigger)
            reclaimed.append(self._read(transaction, trigger.id))
        return reclaimed

    def cut_pauses(self, transaction: Transaction) -> int:
        """Shorten pauses to an hour from now; return how many were longer.

        If the clock was ahead when a trigger failed, its pause would end too late.
        """
        latest = seconds_of(transaction.now_ns + LONGEST_PAUSE_NS)
        cut = 0
        for _, trigger in TRIGGERS.select(
            transaction,
            f"{NOT_DONE} AND status='PENDING' AND due_at>? AND not_before>?",
            (latest, latest),
            SESSION_INDEX,
        ):
            if not isinstance(trigger, RowDamaged):
                self._wait(transaction, trigger._replace(not_before=latest))
                cut += 1
        return cut

    def end_session(self, transaction: Transaction, session_id: str) -> None:
        """End the triggers of a session that has ended, or route them again.

        Its reminders and schedules end, routed triggers are routed again, others are FAILED.
        """
        self._schedules.end_session(transaction, session_id)
        for _, trigger in TRIGGERS.select(
            transaction,
            f"session_id=? AND {NOT_DONE} AND status IN ('PENDING', 'CLAIMED') ORDER BY rowid",
            (session_id,),
        ):  # fmt: skip
            if isinstance(trigger, RowDamaged):
                continue
            if trigger.routed:
                again = trigger._replace(session_id=None, routed=False, attempts=0)
                self._wait(transaction, again)
            elif (trigger.dedup_key or "").startswith(f"{REMINDER.prefix}:"):
                self._settle(transaction, trigger, Resolution.SUPERSEDED)
            else:
                self._stop(transaction, trigger, TriggerStatus.FAILED, "its session has ended")

    def cancel(self, transaction: Transaction, trigger_id: str) -> None:
        """Settle a reminder that a durable line has cancelled, whatever its status is.

        It may be DEAD, or CLAIMED by a turn whose failure the database has refused. A row that was
        removed, or is DONE, is not changed. Raises ``RowDamaged``.
        """
        self._settle_open(transaction, trigger_id, Resolution.SUPERSEDED)

    # -- a person ------------------------------------------------------------------------

    def retry(self, transaction: Transaction, trigger_id: str) -> None:
        """Run a FAILED or DEAD trigger again, with all its attempts.

        Raises ``UnknownTrigger``, ``AlreadyDecided`` (also if a newer trigger holds its key),
        ``NoRecipient`` if its session has ended, or ``RowDamaged``.
        """
        trigger = self._emitter.with_recipient(
            transaction, self._undecided(transaction, trigger_id)
        )
        key = trigger.dedup_key
        if key is not None:
            holder = holder_of(transaction, key)
            if holder not in (None, trigger.id):
                raise AlreadyDecided(f"trigger {trigger_id!r}", f"replaced by {holder!r}")
            if holder is None and schedule_id_of(key) is None:
                give_key(transaction, producer_of(trigger.source, key), key, trigger.id)
        again = trigger._replace(
            not_before=None, attempts=0, reason=None, resolution=Resolution.RETRIED.value
        )
        self._wait(transaction, again)
        if trigger.source is TriggerSource.RESUME:
            self._tasks.unblock(transaction, _task_of(trigger))

    def discard(self, transaction: Transaction, trigger_id: str) -> None:
        """Settle a FAILED or DEAD trigger without running it; raises as ``retry``."""
        trigger = self._undecided(transaction, trigger_id)
        self._settle(transaction, trigger, Resolution.DISCARDED)

    # -- shared --------------------------------------------------------------------------

    def _read(self, transaction: Transaction, trigger_id: str) -> Trigger:
        trigger = TRIGGERS.read(transaction, trigger_id)
        if trigger is None:
            raise UnknownTrigger(trigger_id)
        return trigger

    def _read_waiting(self, transaction: Transaction, trigger_id: str) -> Trigger | None:
        """Return a trigger if it is PENDING; any other is removed from the queue."""
        try:
            trigger = TRIGGERS.read(transaction, trigger_id)
        except RowDamaged:
            self._queue.remove(trigger_id)
            raise
        if trigger is not None and trigger.status is TriggerStatus.PENDING:
            return trigger
        transaction.after_commit(lambda: self._queue.remove(trigger_id))
        return None

    def _held(self, transaction: Transaction, claim: Claim) -> Trigger:
        expected, found = claim.trigger, self._read(transaction, claim.trigger.id)
        is_held = (
            found.status is TriggerStatus.CLAIMED
            and found.epoch == expected.epoch
            and found.fence == expected.fence
        )
        if not is_held:
            shown = f"{found.status} fence={found.fence}"
            raise FencedOff(found.id, expected.fence, shown)
        return found

    def _undecided(self, transaction: Transaction, trigger_id: str) -> Trigger:
        trigger = self._read(transaction, trigger_id)
        if trigger.status not in UNDECIDED:
            raise AlreadyDecided(f"trigger {trigger_id!r}", trigger.status)
        return trigger

    def _settle_open(self, transaction: Transaction, trigger_id: str, how: Resolution) -> None:
        trigger = TRIGGERS.read(transaction, trigger_id)
        if trigger is not None and trigger.status is not TriggerStatus.DONE:
            self._settle(transaction, trigger, how)

    def _settle(self, transaction: Transaction, trigger: Trigger, how: Resolution) -> None:
        release_keys(transaction, trigger.id)
        TRIGGERS.update(transaction, done(trigger, how, transaction.now))
        if how is Resolution.HANDLED:
            self._schedules.handled(transaction, trigger)
        transaction.after_commit(lambda: self._queue.remove(trigger.id))

    def _stop(
        self, transaction: Transaction, trigger: Trigger, status: TriggerStatus, reason: str
    ) -> TriggerStatus:
        stopped = trigger._replace(
            status=status, reason=reason, lease_until=None, updated_at=transaction.now
        )
        TRIGGERS.update(transaction, stopped)
        release_keys(transaction, trigger.id)
        # A trigger that was retried may become DEAD again, and so may one with the id of a removed
        # one; that is another report.
        message_id = f"{trigger.id}.dead"
        if trigger.resolution == Resolution.RETRIED or self._reports.is_taken(message_id):
            message_id = self._reports.another_id(message_id)
        self._reports.add(transaction, message_id, None, _notice(stopped))
        self._schedules.stopped(transaction, trigger)
        if trigger.source is TriggerSource.RESUME:
            self._tasks.block(transaction, _task_of(trigger), f"resuming it is {status}: {reason}")
        transaction.after_commit(lambda: self._queue.remove(trigger.id))
        return status

    def _wait(self, transaction: Transaction, trigger: Trigger) -> TriggerStatus:
        """Make a trigger PENDING as given, due at the later of its two times."""
        due_at = max(trigger.fire_at, trigger.not_before or trigger.fire_at)
        waiting = trigger._replace(
            status=TriggerStatus.PENDING, due_at=due_at, lease_until=None,
            updated_at=transaction.now,
        )  # fmt: skip
        TRIGGERS.update(transaction, waiting)
        found = transaction.execute("SELECT rowid FROM triggers WHERE id=?", (trigger.id,))
        number = found[0][0]
        assert isinstance(number, int)
        transaction.after_commit(lambda: self._queue.add(waiting, number))
        return TriggerStatus.PENDING


def _notice(trigger: Trigger) -> JsonObject:
    return {
        "notice": "trigger",
        "v": 1,
        "trigger_id": trigger.id,
        "status": str(trigger.status),
        "source": str(trigger.source),
        "key": trigger.dedup_key,
        "session_id": trigger.session_id,
        "fire_at": trigger.fire_at,
        "attempts": trigger.attempts,
        "reason": trigger.reason,
    }


def _task_of(trigger: Trigger) -> str:
    assert trigger.dedup_key is not None
    return trigger.dedup_key.removeprefix(f"{RESUME.prefix}:")
