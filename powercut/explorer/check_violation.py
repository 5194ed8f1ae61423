"""Exceptions of a check as violations: an assertion, or a recovery that fails."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Final

from oracles.violation import CheckFailed, UnreadableAfterCrash, Violation
from powercut.explorer.exits import exits_refused
from powercut.explorer.running_check import running_check
from powercut.place import Stack
from powercut.user_function import refuse_verdict
from sim.errors import HarnessError

FAILS_AT_START: Final = (
    "nothing is acknowledged there, so nothing can be lost: correct the check, which may demand "
    "only what is acknowledged"
)
"""What to do with a check that fails before the first operation."""


NOT_ENDED: Final = "the check did not end within the time of --timeout"
"""The statement on a check that runs in a process of its own, which was ended."""


def violation_raised(check: Callable[[], object]) -> Violation | None:
    """Call a check, and return the violation that it raises, or None.

    An assertion that fails is a violation, and so is any other exception, a ``sys.exit`` and a
    cancellation: a recovery that fails. A ``HarnessError`` is raised as it is, and one for a check
    that returns a truth value or calls ``os._exit``. ``Stopped`` is raised if it is interrupted.
    """
    try:
        with running_check(), exits_refused():
            refuse_verdict("the check", check())
    except HarnessError:
        raise
    except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001 - all are findings
        return violation_of(error)
    return None


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
