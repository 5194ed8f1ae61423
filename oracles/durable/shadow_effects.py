"""Irreversible actions: the ledger of the system compared with the effects that have happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oracles.durable.rows import Row, Rows
from oracles.durable.violations import (
    MissingEffect,
    RepeatedEffect,
    UncountedAttempt,
    WrongOutcome,
)
from oracles.violation import FalseAlarm, Resurrected, Starved

_FINAL = ("DONE", "FAILED", "UNCERTAIN")


@dataclass(slots=True)
class KnownActivity:
    """The effects and requests of an activity up to the last decision ``again``.

    ``again`` counts these decisions. ``doubted``: a request of it has failed, or a crash
    happened before it was performed. ``status`` is the status read last, ``final_at`` the time
    at which nothing remained to be decided, or None.
    """

    again: int = 0
    effects_before: int = 0
    requests_before: int = 0
    doubted: bool = False
    refused: bool = False
    status: str = "INTENT"
    decided: bool = False
    final_at: float | None = None


class ShadowEffects:
    """All activities by their keys."""

    def __init__(self) -> None:
        self._known: dict[str, KnownActivity] = {}

    def knows(self, key: str) -> bool:
        """Return whether anything was recorded about an activity."""
        return key in self._known

    def doubt(self, key: str) -> None:
        """Record that a request may have had its effect, or not."""
        self._activity(key).doubted = True

    def refuse(self, key: str) -> None:
        """Record that the provider has refused a request."""
        self._activity(key).refused = True

    def crash(self) -> None:
        """Record a crash, which may have interrupted any request."""
        for activity in self._known.values():
            activity.doubted |= activity.status == "INTENT"

    def decide(self, key: str, status: str, effects: int, requests: int) -> None:
        """Record the decision of a person, durable or in flight."""
        activity = self._activity(key)
        activity.decided = True
        activity.status = ""
        if status == "INTENT":
            activity.again += 1
            activity.effects_before, activity.requests_before = effects, requests

    def settled_before(self, moment: float) -> list[str]:
        """Return the activities that were settled and decided before a time."""
        known = self._known.items()
        return [key for key, each in known if each.final_at is not None and each.final_at < moment]

    def check(
        self, rows: Rows, effects: Mapping[str, int], requests: Mapping[str, int], now: float
    ) -> None:
        """Check the ledger against the number of effects and requests of each key.

        ``now`` is the latest time at which an outcome may have been written.
        """
        for key, number in effects.items():
            if number > 1 + self._activity(key).again:
                raise RepeatedEffect("an effect has happened twice", key=key, effects=number)
        for key, row in rows.activities.items():
            activity = self._activity(key)
            self._check_row(key, activity, row, effects.get(key, 0), requests.get(key, 0))
            activity.status = row["status"]
            if not is_final(row):
                activity.final_at = None
            elif activity.final_at is None:
                activity.final_at = now

    def _check_row(
        self, key: str, known: KnownActivity, row: Row, effects: int, requests: int
    ) -> None:
        status = row["status"]
        evidence = {"key": key, "known": known, "actual": row, "effects": effects}
        if known.status in _FINAL and status != known.status:
            raise Resurrected("the outcome of an activity has changed", **evidence)
        if row["attempts"] < requests - known.requests_before and status != "DONE":
            raise UncountedAttempt("a request was made without a durable attempt", **evidence)
        if known.decided:
            return
        if status == "DONE" and not effects:
            raise MissingEffect("an activity counts as performed without an effect", **evidence)
        if status == "FAILED" and (effects or not known.refused):
            raise WrongOutcome("an activity counts as refused that was not", **evidence)
        if status == "UNCERTAIN" and not known.doubted:
            raise FalseAlarm("the outcome of an activity is known", **evidence)

    def check_performed(self, rows: Rows, effects: Mapping[str, int]) -> None:
        """Check that no activity remains to be performed."""
        for key, row in rows.activities.items():
            if row["status"] == "INTENT":
                raise Starved("an activity is not performed", key=key, actual=row)
            if row["status"] == "DONE" and not (effects.get(key) or self._activity(key).decided):
                raise MissingEffect("an activity was never performed", key=key, actual=row)

    def _activity(self, key: str) -> KnownActivity:
        return self._known.setdefault(key, KnownActivity())


def is_final(row: Row) -> bool:
    """Return whether nothing is left to decide about an activity; its row may be removed."""
    return row["status"] == "DONE" or (row["status"] == "FAILED" and row["decided_by"] is not None)
