"""Functions of the user: a call of one runs it, and a check reports by an exception."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from powercut.place import defined_at
from sim.errors import HarnessError


class VerdictReturned(HarnessError):
    """A check returned True, False or a coroutine, and nothing reads it.

    Cause: a check that is a predicate, or calls a coroutine function and does not run it. Cure:
    raise an exception if the disk is wrong.
    """


def idle_kind(function: Callable[..., Any]) -> str:
    """Return the kind of a function of which a call does nothing, empty for any other."""
    if inspect.iscoroutinefunction(function):
        return "coroutine function"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "generator function"
    return ""


def must_take(beginning: str, function: Callable[..., object], *parameters: str) -> None:
    """Raise ``HarnessError`` unless a function can be called with values for ``parameters``."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*parameters)
    except TypeError:
        taken = inspect.Signature(
            [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        )
        raise HarnessError(
            f"{beginning} takes {taken}, and must take ({', '.join(parameters)})"
            f"{defined_at(function)}"
        ) from None


def refuse_verdict(name: str, returned: object) -> None:
    """Raise ``VerdictReturned`` if a check has returned its verdict instead of raising it."""
    if inspect.iscoroutine(returned):
        returned.close()
    elif not isinstance(returned, bool):
        return
    raise VerdictReturned(
        f"{name} returned {returned!r:.100}, which nothing reads; raise an exception if the disk "
        "is wrong, such as an AssertionError or a powercut.Violation, and return nothing"
    )
