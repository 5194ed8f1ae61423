"""Mutants of triggers, schedules and tasks (docs/planted-bugs.md)."""

from __future__ import annotations

from typing import Final

from crash_tests.mutants.folders import AGENT_TESTS, DURABLE_TESTS
from oracles.durable.violations import (
    EndlessRetry,
    FreedKey,
    MovedTime,
    RepeatedTrigger,
    StaleSettlement,
    SuppressedTrigger,
    TornTransaction,
    UncountedAttempt,
    WrongSchedule,
)
from oracles.violation import LostAck, Resurrected, TornRecord, UnreadableAfterCrash
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET: Final = "durable"

settled_trigger_frees_every_key = Mutant(
    "a settled trigger frees its key, also one that is taken for ever",
    _TARGET,
    (FreedKey, RepeatedTrigger),
    (
        SourcePatch(
            "system.durable.dedup",
            "query = \"SELECT CAST(key AS BLOB) FROM dedup WHERE trigger_id=? AND scope='active'\"",
            'query = "SELECT CAST(key AS BLOB) FROM dedup WHERE trigger_id=?"',
        ),
    ),
)

reclaim_ignores_attempts = Mutant(
    "a boot reclaims a trigger whatever its attempts",
    _TARGET,
    (EndlessRetry,),
    (
        SourcePatch(
            "system.durable.trigger_store",
            """
            if trigger.attempts >= self._most_attempts:
                self._stop(
            """,
            """
            if not trigger:
                self._stop(
            """,
        ),
    ),
)

stale_claim_is_accepted = Mutant(
    "a claim settles its trigger although it no longer holds it",
    _TARGET,
    (StaleSettlement, LostAck),
    (SourcePatch("system.durable.trigger_store", "if not is_held:", "if not expected:"),),
)

turn_is_applied_in_two_transactions = Mutant(
    "the trigger of a turn is settled before its outbox is applied",
    _TARGET,
    (LostAck, TornTransaction),
    (
        SourcePatch(
            "system.durable.stores",
            "for trigger_id in outbox.superseded:",
            """
            transaction.execute("COMMIT")
            transaction.execute("BEGIN IMMEDIATE")
            for trigger_id in outbox.superseded:
            """,
        ),
    ),
)

claimed_trigger_is_superseded = Mutant(
    "a newer trigger supersedes one that a turn handles",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.emitter",
            "f\"session_id=? AND {NOT_DONE} AND status='PENDING' AND source=? ORDER BY rowid\",",
            "f\"session_id=? AND {NOT_DONE} AND status IN ('PENDING', 'CLAIMED')\"\n"
            '" AND source=? ORDER BY rowid",',
        ),
        SourcePatch("system.durable.emitter", "assert trigger.status is TriggerStatus.PENDING", ""),
    ),
)

overdue_trigger_is_dropped = Mutant(
    "a boot settles triggers that are more than a day overdue",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.trigger_store",
            "elif trigger.status is TriggerStatus.PENDING:",
            """
            elif trigger.due_at < transaction.now - 86_400:
                if trigger.status is TriggerStatus.PENDING:
                    self._settle(transaction, trigger, Resolution.SUPERSEDED)
            elif trigger.status is TriggerStatus.PENDING:
            """,
        ),
    ),
)

old_task_is_dropped = Mutant(
    "a boot removes tasks that have made no progress for a day",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.task_store",
            """
            if isinstance(task, RowDamaged) or not may_resume(task.session_id):
                continue
            """,
            """
            if isinstance(task, RowDamaged) or not may_resume(task.session_id):
                continue
            if transaction.now - task.updated_at > 86_400:
                TASKS.delete(transaction, task.task_id)
                continue
            """,
        ),
    ),
)

pause_moves_the_time = Mutant(
    "a failed trigger is given another time",
    _TARGET,
    (MovedTime,),
    (
        SourcePatch(
            "system.durable.trigger_store",
            "waiting = trigger._replace(not_before=not_before, reason=reason)",
            """
            waiting = trigger._replace(
                not_before=not_before, fire_at=not_before, reason=reason
            )
            """,
        ),
    ),
)

reclaim_counts_an_attempt = Mutant(
    "a boot counts the attempt that the claim has counted",
    _TARGET,
    (UncountedAttempt, LostAck, EndlessRetry),
    (
        SourcePatch(
            "system.durable.trigger_store",
            """
            else:
                self._wait(transaction, trigger)
            """,
            """
            else:
                self._wait(transaction, trigger._replace(attempts=trigger.attempts + 1))
            """,
        ),
    ),
)

events_follow_their_task = Mutant(
    "the events of a task are written in another transaction than the task",
    _TARGET,
    (TornRecord, TornTransaction),
    (
        SourcePatch(
            "system.durable.task_store",
            """
            for event in events:
                TASK_EVENTS.insert(transaction, event)
            """,
            """
            def follow() -> None:
                from contextlib import suppress
                with suppress(Exception):
                    for event in events:
                        TASK_EVENTS.insert(transaction, event)
            transaction.after_commit(follow)
            """,
        ),
    ),
)

expired_key_suppresses = Mutant(
    "a key whose window has ended still refuses a trigger",
    _TARGET,
    (SuppressedTrigger, RepeatedTrigger, LostAck),
    (
        SourcePatch(
            "system.durable.dedup",
            "return transaction.now < expires_at",
            "return expires_at > 0",
        ),
    ),
)

commits_are_not_synced = Mutant(
    "commits are not synced",
    _TARGET,
    (LostAck, TornTransaction, UnreadableAfterCrash),
    (
        SourcePatch(
            "system.storage.database_pragmas",
            '"PRAGMA synchronous=FULL",',
            '"PRAGMA synchronous=NORMAL",',
        ),
    ),
)

log_of_sqlite_is_not_renewed = Mutant(
    "a boot trusts the write-ahead log of SQLite after a failed barrier",
    _TARGET,
    (LostAck, TornTransaction),
    (
        SourcePatch(
            "system.durable.open_state",
            "has_log = _renew_log(host.files)",
            "has_log = host.files.kind(STATE_LOG) is not None",
        ),
    ),
)

pages_of_a_failed_checkpoint_are_kept = Mutant(
    "SQLite writes again to blocks that a failed checkpoint has left unwritten",
    patches=(SourcePatch("system.durable.open_state", "_drop_pages(host.files)", "pass"),),
    tests=(
        (
            f"{DURABLE_TESTS}/test_failed_checkpoints.py"
            "::test_no_commit_is_lost_if_the_barrier_of_a_checkpoint_fails[1-ext4-kill]"
        ),
    ),
)

name_of_the_log_is_not_synced = Mutant(
    "a boot trusts SQLite with the name of its write-ahead log",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.open_state",
            """
            host.files.sync_dir("")
            if root_id not in (None, state.root_id):
            """,
            "if root_id not in (None, state.root_id):",
        ),
    ),
)

dead_trigger_retries_itself = Mutant(
    "a trigger that is DEAD is retried without the decision of a person",
    _TARGET,
    (EndlessRetry,),
    (
        SourcePatch(
            "system.durable.trigger_store",
            """
            TRIGGERS.update(transaction, stopped)
            release_keys(transaction, trigger.id)
            """,
            """
            if status is TriggerStatus.DEAD:
                retried = trigger._replace(attempts=0, resolution=Resolution.RETRIED.value)
                return self._wait(transaction, retried)
            TRIGGERS.update(transaction, stopped)
            release_keys(transaction, trigger.id)
            """,
        ),
    ),
)

changed_schedule_forgets_its_last_occurrence = Mutant(
    "a changed schedule forgets its last occurrence",
    _TARGET,
    (WrongSchedule,),
    (
        SourcePatch(
            "system.durable.schedule_store",
            "last_nominal=old.last_nominal, created_at=old.created_at",
            "created_at=old.created_at",
        ),
    ),
)

occurrence_outlives_its_schedule = Mutant(
    "an occurrence in another session than that of its schedule outlives the schedule",
    _TARGET,
    (Resurrected,),
    (
        SourcePatch(
            "system.durable.schedule_store",
            "f\"{NOT_DONE} AND status='PENDING' AND (fence>0 OR session_id IS ?) ORDER BY rowid\",",
            "f\"{NOT_DONE} AND status='PENDING' AND session_id IS ? ORDER BY rowid\",",
        ),
    ),
)

stopped_reminder_is_not_cancelled = Mutant(
    "a turn that cancels a DEAD reminder changes nothing, so that a person may retry it",
    patches=(
        SourcePatch(
            "system.durable.trigger_store",
            "self._settle_open(transaction, trigger_id, Resolution.SUPERSEDED)",
            """
            trigger = TRIGGERS.read(transaction, trigger_id)
            if trigger is not None and trigger.status is TriggerStatus.PENDING:
                self._settle(transaction, trigger, Resolution.SUPERSEDED)
            """,
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_reminders.py"
            "::test_a_cancelled_reminder_never_comes_although_its_turns_had_failed"
        ),
    ),
)
