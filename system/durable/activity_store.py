"""The ledger of activities: the key first, then the attempt, then the outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, assert_never

from system.durable.activity import (
    ACTIVITIES,
    Activity,
    ActivityStatus,
    Decision,
    Intent,
    Outcome,
    Refused,
    Unknown,
)
from system.durable.back_off import MOST_ATTEMPTS
from system.durable.errors import (
    AlreadyDecided,
    BadActivity,
    KeyReused,
    RowDamaged,
    RowHidden,
    UnknownActivity,
)
from system.durable.producers import DAY_S
from system.durable.report import ReportStore
from system.durable.state import STATE, Transaction
from system.durable.task import FINAL, TASKS
from system.errors import NotPlainJson, PayloadTooLarge
from system.foreign import reason_of, shown
from system.ports import Action, JsonObject, Performed, SideEffectClass
from system.storage.codec import DEEPEST, canonical, check_texts

MOST_ARGUMENT_BYTES: Final = 1 << 20
DEEPEST_RESULT: Final = DEEPEST - 6
"""The levels of nesting that a result may have, because a message and a line enclose it."""
DEDUP_WINDOW_S: Final = DAY_S
"""The seconds after the intent for which a provider is expected to recognise a key."""

_KEY: Final = re.compile(r"activity:[\x21-\x7e]{1,400}")


class ActivityStore:
    """Changes the ledger in boot ``epoch``; ``reports`` takes the outcomes.

    The row of an attempt under way has the epoch of its boot, so that transactions that share one
    commit see it too. It has none when the attempt has ended, or its boot.
    """

    def __init__(self, epoch: int, reports: ReportStore) -> None:
        self._epoch = epoch
        self._reports = reports
        # The keys that their index does not find; None until they were looked for.
        self._hidden: frozenset[str] | None = None

    def intend(self, transaction: Transaction, intent: Intent) -> Activity:
        """Record an activity before its first attempt; a repetition of the call returns its row.

        Only IRREVERSIBLE actions have rows. Raises ``BadActivity``, ``NotPlainJson``,
        ``KeyReused`` or ``RowDamaged``.
        """
        encoded, action = encoded_arguments(intent), intent.action
        digest = sha256(encoded).hexdigest()
        found = ACTIVITIES.read(transaction, intent.key)
        if found is not None:
            if (found.action, found.arguments_hash) != (action.name, digest):
                raise KeyReused(intent.key, found.action)
            return found
        now = transaction.now
        activity = Activity(
            intent.key, intent.task_id, intent.session_id, intent.turn_id, action.name,
            action.side_effect, action.provider_dedup, encoded.decode("ascii"), digest,
            ActivityStatus.INTENT, attempts=0, epoch=None, provider_ref=None, result_json=None,
            reason=None, decided_by=None, created_at=now, updated_at=now,
        )  # fmt: skip
        ACTIVITIES.insert(transaction, activity)
        return activity

    def intend_for_program(self, transaction: Transaction, intent: Intent) -> Activity:
        """Do the same as ``intend`` for a program, which may repeat its call at any time.

        A new activity may only name an open task: the rows of a task that has ended are removed, so
        a repeated call would perform its action again. Raises as ``intend``.
        """
        if ACTIVITIES.read(transaction, intent.key) is None:
            self._check_not_hidden(transaction, intent.key)
            if intent.task_id is not None:
                _check_open(transaction, intent.task_id)
        return self.intend(transaction, intent)

    def _check_not_hidden(self, transaction: Transaction, key: str) -> None:
        """Raise ``RowHidden`` if an activity has this key, and its index has lost it.

        The table is read once in a boot, when a program gives the first new key.
        """
        if self._hidden is None:
            self._hidden = frozenset(each.key for each in ACTIVITIES.unfound(transaction))
        if key in self._hidden:
            raise RowHidden(STATE, ACTIVITIES.name, key)

    def attempt(
        self, transaction: Transaction, key: str, actions: Mapping[str, Action]
    ) -> Activity | None:
        """Count an attempt before it is made; return None if no attempt is to be made now.

        No attempt is made if the activity has an outcome or an attempt is under way. If the
        provider may no longer recognise the key of an earlier attempt, none is made either, and
        the activity becomes UNCERTAIN. ``actions`` are those that are registered now. Raises
        ``UnknownActivity`` or ``RowDamaged``.
        """
        activity = self.read(transaction, key)
        if activity.status is not ActivityStatus.INTENT or activity.epoch == self._epoch:
            return None
        action = actions.get(activity.action)
        if action is not None and not action.provider_dedup:
            # It was another provider when the intent was written.
            activity = activity._replace(provider_dedup=False)
        if activity.attempts:
            reason = activity.reason or f"attempt={activity.attempts} has no known outcome"
            activity = self._doubted(transaction, activity, reason)
            if activity.status is not ActivityStatus.INTENT:
                self._decide(transaction, activity)
                return None
        attempted = activity._replace(attempts=activity.attempts + 1, epoch=self._epoch)
        self._update(transaction, attempted)
        return attempted

    def record(self, transaction: Transaction, key: str, outcome: Outcome) -> Activity:
        """Record the outcome of the attempt that is under way; return the row.

        After an unknown outcome the activity stays INTENT if the same key may be tried again,
        and else becomes UNCERTAIN. Raises ``UnknownActivity`` or ``RowDamaged``.
        """
        activity = self.read(transaction, key)
        assert activity.status is ActivityStatus.INTENT
        match outcome:
            case Performed():
                decided = _performed(activity, outcome)
            case Refused(reason):
                decided = activity._replace(status=ActivityStatus.FAILED, reason=reason)
            case Unknown(reason):
                decided = self._doubted(transaction, activity, reason)
            case _:
                assert_never(outcome)
        return self._decide(transaction, decided)

    def recover(self, transaction: Transaction) -> list[str | RowDamaged]:
        """Decide, at a boot, about all activities that are INTENT; return the keys to perform.

        Attempts of earlier boots may have performed the action. Damaged rows are returned too.
        """
        to_perform: list[str | RowDamaged] = []
        for _, activity in ACTIVITIES.select(transaction, "status='INTENT' ORDER BY rowid"):
            if isinstance(activity, RowDamaged):
                to_perform.append(activity)
                continue
            if activity.attempts:
                reason = f"its process has ended during attempt={activity.attempts}"
                decided = self._doubted(transaction, activity, reason)
                if decided.status is not ActivityStatus.INTENT:
                    self._decide(transaction, decided)
                    continue
                if activity.epoch is not None:
                    self._update(transaction, activity._replace(epoch=None))
            to_perform.append(activity.idem_key)
        return to_perform

    def resolve(
        self, transaction: Transaction, key: str, decision: Decision, by: str,
        provider_ref: str | None = None,
    ) -> Activity:  # fmt: skip
        """Record the decision of the person ``by`` about an UNCERTAIN or FAILED activity.

        Raises ``BadActivity``, ``AlreadyDecided``, ``UnknownActivity``, ``NotPlainJson``,
        ``PayloadTooLarge`` or ``RowDamaged``.
        """
        try:
            decision = Decision(decision)
        except ValueError as bad:
            raise BadActivity(reason_of(bad)) from None
        check_texts(by=by)
        if not by:
            raise BadActivity("by='' names no person")
        if provider_ref is not None:
            check_texts(provider_ref=provider_ref)
        # Its agent gets both in a message.
        _check_size(len(canonical([by, provider_ref])))
        activity = self.read(transaction, key)
        is_asked = activity.status in (ActivityStatus.UNCERTAIN, ActivityStatus.FAILED)
        if not is_asked or activity.decided_by is not None:
            by_whom = f" by {activity.decided_by}" if activity.decided_by is not None else ""
            raise AlreadyDecided(f"activity {key!r}", f"{activity.status}{by_whom}")
        match decision:
            case Decision.PERFORMED:
                decided = activity._replace(
                    status=ActivityStatus.DONE, provider_ref=provider_ref,
                    result_json="null", decided_by=by,
                )  # fmt: skip
            case Decision.NOT_PERFORMED:
                decided = activity._replace(status=ActivityStatus.FAILED, decided_by=by)
            case Decision.AGAIN:
                decided = activity._replace(
                    status=ActivityStatus.INTENT, attempts=0, epoch=None, decided_by=by
                )
            case _:
                assert_never(decision)
        self._update(transaction, decided)
        if decided.status is not ActivityStatus.INTENT:
            self._report(transaction, decided, f"{key}.decided")
        return decided

    def read(self, transaction: Transaction, key: str) -> Activity:
        """Return the row of an activity; raises ``UnknownActivity`` or ``RowDamaged``."""
        activity = ACTIVITIES.read(transaction, key)
        if activity is None:
            raise UnknownActivity(key)
        return activity

    def undecided(self, transaction: Transaction) -> list[Activity | RowDamaged]:
        """Return UNCERTAIN and FAILED activities without a decision, and damaged rows; by age."""
        rows = ACTIVITIES.select(transaction, "status<>'DONE' ORDER BY rowid")
        return [
            each
            for _, each in rows
            if isinstance(each, RowDamaged)
            or (each.status is not ActivityStatus.INTENT and each.decided_by is None)
        ]

    def _doubted(self, transaction: Transaction, activity: Activity, reason: str) -> Activity:
        """Return an activity after an attempt with unknown outcome."""
        is_repeatable = (
            activity.provider_dedup
            and activity.attempts < MOST_ATTEMPTS
            and transaction.now < activity.created_at + DEDUP_WINDOW_S
        )
        status = ActivityStatus.INTENT if is_repeatable else ActivityStatus.UNCERTAIN
        return activity._replace(status=status, reason=reason, epoch=None)

    def _decide(self, transaction: Transaction, activity: Activity) -> Activity:
        """Record an activity after an attempt, and report its outcome if it has one.

        After the decision ``again``, the new outcome is reported under another id.
        """
        is_first = activity.decided_by is None
        if activity.status is not ActivityStatus.INTENT:
            activity = activity._replace(decided_by=None)
            outcome, uncertain = f"{activity.idem_key}.result", f"{activity.idem_key}.uncertain"
            if not is_first:
                outcome = self._reports.another_id(outcome)
                uncertain = self._reports.another_id(uncertain)
            self._report(transaction, activity, outcome)
            if activity.status is ActivityStatus.UNCERTAIN:
                self._reports.add(transaction, uncertain, None, _notice(activity))
        self._update(transaction, activity)
        return activity

    def _report(self, transaction: Transaction, activity: Activity, message_id: str) -> None:
        """Report an outcome to the agent whose turn has asked for the activity."""
        if activity.session_id is not None:
            outcome: JsonObject = {
                "activity_id": activity.idem_key,
                "action": activity.action,
                "status": str(activity.status),
                "provider_ref": activity.provider_ref,
                "result": activity.result,
                "reason": activity.reason,
                "decided_by": activity.decided_by,
            }
            self._reports.add(transaction, message_id, activity.session_id, outcome)

    def _update(self, transaction: Transaction, activity: Activity) -> None:
        ACTIVITIES.update(transaction, activity._replace(updated_at=transaction.now))


def encoded_arguments(intent: Intent) -> bytes:
    """Return the arguments of an activity as canonical JSON.

    Raises ``BadActivity`` or ``NotPlainJson`` if it cannot be recorded as it is described.
    """
    action = intent.action
    if action.side_effect is not SideEffectClass.IRREVERSIBLE:
        raise BadActivity(f"action={action.name!r} is {action.side_effect} and needs no row")
    if type(intent.key) is not str or not _KEY.fullmatch(intent.key):
        raise BadActivity(
            f"key={shown(intent.key, 200)} is not a key;"
            " give activity: and 1 to 400 visible ASCII characters"
        )
    if intent.task_id is not None:
        check_texts(task_id=intent.task_id)
    arguments: object = intent.arguments
    if not isinstance(arguments, dict):
        raise BadActivity(f"arguments={shown(arguments, 100)} is not an object")
    encoded = canonical(intent.arguments)
    if len(encoded) > MOST_ARGUMENT_BYTES:
        raise BadActivity(
            f"arguments of size_bytes={len(encoded)} are over the limit of {MOST_ARGUMENT_BYTES}"
        )
    return encoded


def _check_open(transaction: Transaction, task_id: str) -> None:
    """Raise ``BadActivity`` if a task has ended or is unknown, or ``RowDamaged``."""
    task = TASKS.read(transaction, task_id)
    if task is None or task.status in FINAL:
        state = "unknown" if task is None else task.status
        raise BadActivity(f"task_id={shown(task_id, 100)} is {state}")


def _notice(activity: Activity) -> JsonObject:
    """Return the payload of the report to the operator."""
    return {
        "notice": "activity",
        "v": 1,
        "activity_id": activity.idem_key,
        "action": activity.action,
        "status": str(activity.status),
        "session_id": activity.session_id,
        "attempts": activity.attempts,
        "reason": activity.reason,
    }


def _performed(activity: Activity, performed: Performed) -> Activity:
    """Return an activity as DONE; a provider_ref or a result that no message takes is left out."""
    provider_ref, reference, result, left_out = None, b"null", b"null", list[str]()
    try:
        reference = _reference(performed.provider_ref)
        provider_ref = performed.provider_ref
    except (NotPlainJson, PayloadTooLarge) as refused:
        left_out.append(f"its provider_ref is left out: {refused}")
    try:
        encoded = canonical(performed.result, DEEPEST_RESULT)
        _check_size(len(encoded) + len(reference))
        result = encoded
    except (NotPlainJson, PayloadTooLarge) as refused:
        left_out.append(f"its result is left out: {refused}")
    return activity._replace(
        status=ActivityStatus.DONE, provider_ref=provider_ref,
        result_json=result.decode("ascii"), reason="; ".join(left_out) or None,
    )  # fmt: skip


def _reference(named: object) -> bytes:
    """Return a provider_ref as canonical JSON; raises ``NotPlainJson`` or ``PayloadTooLarge``."""
    if not (named is None or isinstance(named, str)):
        raise NotPlainJson("provider_ref", f"{shown(named, 100)} is not a text")
    encoded = canonical(named)
    _check_size(len(encoded))
    return encoded


def _check_size(size_bytes: int) -> None:
    """Raise ``PayloadTooLarge`` if so many bytes are more than a message takes."""
    if size_bytes > MOST_ARGUMENT_BYTES:
        raise PayloadTooLarge(size_bytes, MOST_ARGUMENT_BYTES)
