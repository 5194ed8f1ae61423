"""The violations of the contract of durable execution, beyond the generic ones."""

from __future__ import annotations

from oracles.violation import Violation


class RepeatedTrigger(Violation):
    """A trigger exists although its key or id was taken."""


class FreedKey(Violation):
    """A key is free although its scope has not ended."""


class SuppressedTrigger(Violation):
    """A trigger was not emitted although its key was free."""


class EndlessRetry(Violation):
    """A trigger whose attempts are used up is run again."""


class UncountedAttempt(Violation):
    """The attempts or claims of a trigger are not counted as the contract says."""


class MovedTime(Violation):
    """The time of a trigger was changed, or its pause has another length than the contract says."""


class EarlyTrigger(Violation):
    """A trigger was claimed, or run, before its time."""


class WrongOrder(Violation):
    """A trigger was claimed before another one that comes first."""


class StaleSettlement(Violation):
    """A claim that no longer holds its trigger has changed it."""


class TornTransaction(Violation):
    """Only a part of a transaction has happened."""


class WrongSchedule(Violation):
    """A schedule names another occurrence than the one to come."""


class RepeatedEffect(Violation):
    """An irreversible action was performed twice without the decision of a person."""


class MissingEffect(Violation):
    """An activity is DONE without an effect, or was never performed."""


class WrongOutcome(Violation):
    """The ledger has another outcome of an activity than the provider."""


class KeptTooLong(Violation):
    """A settled row, or a key that refuses nothing, is kept beyond its time."""
