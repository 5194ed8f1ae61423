"""Exceptions of a check as violations: an assertion, or a recovery that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from oracles.violation import CheckFailed, UnreadableAfterCrash, Violation
from powercut.explorer.exits import ExitsRefused
from powercut.explorer.running_check import running_check
from powercut.place import Stack
from powercut.user_function import refuse_verdict
from sim.errors import described, is_of_program

FAILS_AT_START: Final = (
    "nothing is acknowledged there, so nothing can be lost: correct the check, which may demand "
    "only what is acknowledged"
)
"""The end of the sentence on a check that fails before the first operation."""


NOT_ENDED: Final = "the check did not end within the time of --timeout"
"""The statement on a check that runs in a process of its own, which was ended."""


def violation_raised(check: Callable[[], object]) -> Violation | None:
    """Call a check, and return the violation that it raises, or None.

    An assertion that fails is a violation, and so is any other exception of the program, also a
    ``sys.exit``, a cancellation, ``pytest.fail`` or the panic of a library in Rust. A
    ``HarnessError`` is raised as it is, and one for a check that returns a truth value or calls
    ``os._exit``. ``Stopped`` is raised if it is interrupted.
    """
    try:
        with running_check(), ExitsRefused():
            refuse_verdict("the check", check())
    except BaseException as error:
        if not is_of_program(error):
            raise
        return violation_of(error)
    return None


def violation_of(error: BaseException) -> Violation:
    """Return an exception that a check raised as a violation; a violation is returned as it is.

    Its evidence ``at`` is the line of the program that raised it.
    """
    if isinstance(error, Violation):
        return error
    named = described(error)
    place = Stack().raised_at(error.__traceback__)
    evidence = {} if place is None else {"at": place.where}
    if isinstance(error, AssertionError):
        return CheckFailed(f"the check failed: {named}", **evidence)
    return UnreadableAfterCrash(f"the check raised {named}", **evidence)
