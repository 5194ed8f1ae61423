"""Exceptions of a check as violations: an assertion, or a recovery that fails."""

from __future__ import annotations

from oracles.violation import CheckFailed, UnreadableAfterCrash, Violation
from powercut.place import Stack


def violation_of(error: BaseException) -> Violation:
    """Return an exception that a check raised as a violation; a violation is returned as it is.

    Its evidence ``at`` is the line of the program that raised it.
    """
    if isinstance(error, Violation):
        return error
    named = f"{type(error).__name__}: {error}".removesuffix(": ")
    place = Stack().raised_at(error.__traceback__)
    evidence = {} if place is None else {"at": place.where}
    if isinstance(error, AssertionError):
        return CheckFailed(f"the check failed: {named}", **evidence)
    return UnreadableAfterCrash(f"the check raised {named}", **evidence)
