"""The violations of the contract of recording; the generic ones are in ``oracles.violation``."""

from __future__ import annotations

from oracles.violation import Violation


class BrokenRecord(Violation):
    """A record that the store serves has a wrong hash, chain, number or member."""


class UnearnedReplay(Violation):
    """A record is replayable although it is incomplete, was marked, or was invalidated."""


class WrongReason(Violation):
    """A record that is not replayable has another reason than the right one."""


class WrongReplay(Violation):
    """A replay returns another response than the recorded one, or refuses a replayable record."""


class WrongCrashPoint(Violation):
    """An interrupted execution is missing in ``incomplete``, or is shown at another stage."""


class BrokenLog(Violation):
    """A segment that a running system writes is not in the format of segments."""


class UnreportedDamage(Violation):
    """Damage has destroyed durable entries, and the recovery does not report it."""
