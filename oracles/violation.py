"""The violations that an oracle can prove: one class for each property that may be broken.

A violation carries its evidence as plain data, so that a reproducer stores it and a report
prints the expected value beside the actual one.
"""

from __future__ import annotations

import re
from typing import Final

_SHOWN_CHARACTERS: Final = 160
_BYTE: Final = re.compile(r"(?<!\\)\\udc([89a-f][0-9a-f])")


def shown(value: object) -> str:
    """Return ``repr(value)``, shortened in the middle if it is longer than 160 characters.

    A byte that is not UTF-8, and was decoded as a surrogate, is shown as a byte.
    """
    text = repr(value)
    if r"\udc" in text:  # a search of a text is much faster than one with a pattern
        text = _BYTE.sub(r"\\x\1", text)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    half = _SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {len(text) - 2 * half} more … {text[-half:]}"


class Violation(Exception):
    """A property of the system under test does not hold.

    ``statement`` says in one sentence how the property is broken; the keyword arguments name
    the values that prove it, the expected ones before the actual ones. Raise a subclass: the
    name of the class names the property in reports and reproducers, and two failures of one
    class count as the same failure.
    """

    def __init__(self, statement: str, **evidence: object) -> None:
        super().__init__(statement)
        self.statement = str(statement)
        self.evidence = evidence

    @property
    def property_name(self) -> str:
        """The name of the broken property in reports and reproducers."""
        return type(self).__name__

    def __str__(self) -> str:
        named = " ".join(f"{name}={shown(value)}" for name, value in self.evidence.items())
        return f"{self.statement} ({named})" if named else self.statement


class LostAck(Violation):
    """Acknowledged data is lost or replaced by an older value."""


class TornRecord(Violation):
    """A record is incomplete, mixed from two writes, or differs from the one written."""


class Resurrected(Violation):
    """Data is back that an earlier read had shown to be absent or replaced."""


class Reordered(Violation):
    """Records are complete but not in the order in which they were written."""


class LogGap(Violation):
    """A record survived although one written before it did not."""


class Duplicated(Violation):
    """A record that was written once exists twice."""


class Phantom(Violation):
    """A record exists that was never written."""


class SilentEmpty(Violation):
    """An acknowledged file or value is empty or missing, and the system reports no damage."""


class UnreadableAfterCrash(Violation):
    """The system does not open after a crash, although no fault is active."""


class CheckFailed(Violation):
    """The check does not hold: one of its assertions fails, or its command does."""


class NotIdempotent(Violation):
    """A second recovery changed the result of the first."""


class CorruptLog(Violation):
    """A recovered log contains bytes that are not one of its records."""


class Garbage(Violation):
    """A file is left that the system will never read or delete."""


class NotContained(Violation):
    """One damaged file makes undamaged ones unavailable."""


class InvalidState(Violation):
    """A record is in a state that is not allowed at this point."""


class OutOfSync(Violation):
    """The running system returns other data than its durable state holds."""


class Starved(Violation):
    """No fault is active and nothing moves, yet accepted work is not done."""


class FalseAlarm(Violation):
    """The system reports damage, or fails, although nothing was damaged."""
