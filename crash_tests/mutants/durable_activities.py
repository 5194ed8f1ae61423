"""Mutants of the ledger of activities (docs/planted-bugs.md)."""

from __future__ import annotations

from typing import Final

from oracles.durable.violations import RepeatedEffect, UncountedAttempt
from oracles.violation import LostAck, Resurrected
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET: Final = "durable"

two_callers_attempt = Mutant(
    "two callers attempt one activity at the same time",
    _TARGET,
    (RepeatedEffect,),
    (
        SourcePatch(
            "system.durable.activity_store",
            "if activity.status is not ActivityStatus.INTENT or activity.epoch == self._epoch:",
            "if activity.status is not ActivityStatus.INTENT:",
        ),
        SourcePatch(
            "system.durable.activity_store",
            "assert activity.status is ActivityStatus.INTENT",
            "",
        ),
        SourcePatch(
            "system.durable.activity_store",
            """
            if activity.attempts:
                reason = activity.reason or f"attempt={activity.attempts} has no known outcome"
            """,
            """
            if not activity.idem_key:
                reason = activity.action
            """,
        ),
    ),
)

old_activity_is_repeated = Mutant(
    "a key that was performed ten minutes ago counts as a deliberate repetition",
    _TARGET,
    (RepeatedEffect, Resurrected),
    (
        SourcePatch(
            "system.durable.activity_store",
            """
                raise KeyReused(intent.key, found.action)
            return found
            """,
            """
                raise KeyReused(intent.key, found.action)
            if found.status is ActivityStatus.DONE and found.updated_at < transaction.now - 600:
                found = found._replace(status=ActivityStatus.INTENT, attempts=0)
                self._update(transaction, found)
            return found
            """,
        ),
    ),
)

interrupted_attempt_is_repeated = Mutant(
    "a boot repeats an attempt at a provider that does not deduplicate",
    _TARGET,
    (RepeatedEffect,),
    (
        SourcePatch(
            "system.durable.activity_store",
            """
            activity.provider_dedup
            and activity.attempts < MOST_ATTEMPTS
            """,
            "activity.attempts < MOST_ATTEMPTS",
        ),
    ),
)

undecided_activity_is_removed = Mutant(
    "undecided activities are removed after a day",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.retention",
            'f" AND {_NEVER_REPEATED} LIMIT ?",',
            "f\" AND ({_NEVER_REPEATED} OR status='UNCERTAIN') LIMIT ?\",",
        ),
        SourcePatch(
            "system.durable.retention",
            "\"(status='DONE' OR status='FAILED' AND decided_by IS NOT NULL) AND updated_at<=?\"",
            "\"status<>'INTENT' AND updated_at<=?\"",
        ),
    ),
)

equal_arguments_are_one_activity = Mutant(
    "activities with equal arguments count as one",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.durable.activity_store",
            "found = ACTIVITIES.read(transaction, intent.key)",
            """
            known = transaction.execute(
                "SELECT idem_key FROM activity_log WHERE arguments_hash=? AND action=?",
                (digest, action.name),
            )
            found = ACTIVITIES.read(transaction, str(known[0][0])) if known else None
            """,
        ),
    ),
)

attempt_is_not_durable = Mutant(
    "an attempt is counted in memory only",
    _TARGET,
    (UncountedAttempt, RepeatedEffect),
    (
        SourcePatch(
            "system.durable.activity_store",
            "self._update(transaction, attempted)",
            "",
        ),
    ),
)
