"""What an oracle proves: one class per property, because failures are told apart by class.

A violation carries its evidence as plain data, so that a reproducer can keep it and a
report can show expected beside actual.
"""

from __future__ import annotations

from typing import Final

_SHOWN_CHARACTERS: Final = 160


def shown(value: object) -> str:
    """Return ``repr(value)``, cut in the middle when it is too long to read."""
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    half = _SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {len(text) - 2 * half} more … {text[-half:]}"


class Violation(Exception):
    """A property of the system under test does not hold.

    ``statement`` says what happened, in one sentence; ``evidence`` names the values.
    """

    def __init__(self, statement: str, **evidence: object) -> None:
        super().__init__(statement)
        self.statement = statement
        self.evidence = evidence

    @property
    def property_name(self) -> str:
        """The short name of the broken property, as it stands in reproducers."""
        return type(self).__name__

    def __str__(self) -> str:
        named = " ".join(f"{name}={shown(value)}" for name, value in self.evidence.items())
        return f"{self.statement} ({named})" if named else self.statement


class LostAck(Violation):
    """Something acknowledged is gone."""


class TornRecord(Violation):
    """Something is there in part, or mixed from two writes."""


class Resurrected(Violation):
    """Something is back that an earlier look had shown to be gone or replaced."""


class Reordered(Violation):
    """Everything is there, in an order in which it was not written."""


class Overtaken(Violation):
    """Something is there without what was written before it."""


class Duplicated(Violation):
    """Something written once is there twice."""


class Invented(Violation):
    """Something is there that nobody ever wrote."""


class SilentEmpty(Violation):
    """All data is gone, and the store opens as if there had never been any."""


class UnreadableAfterCrash(Violation):
    """After a crash alone, with no fault left, the system does not come up."""


class NotIdempotent(Violation):
    """A second recovery changed what the first one left."""


class Garbage(Violation):
    """A file is left that nothing will ever read."""


class NotContained(Violation):
    """One damaged file keeps the others from being served."""


class InvalidState(Violation):
    """A record is in a state that it must not be in at this point."""


class FalseAlarm(Violation):
    """The system reports damage, or fails, although nothing was damaged."""
