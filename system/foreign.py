"""Foreign code: providers, routers, actions, and callers without a type checker.

Their values and failures are written into messages and lines, which are plain text. A failure of
a provider, a router or an action is any exception that leaves it, also one that is no ``Exception``
(a panic in Rust code, for instance), except those of ``passes``.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Callable
from typing import Final

MOST_CHARACTERS: Final = 500


def passes(failure: BaseException) -> bool:
    """Whether an exception that leaves foreign code is no failure of it, and must be raised.

    That is the cancellation of the current task, but not of a task inside the foreign code, and
    every exception that ends the process or closes a coroutine.
    """
    if isinstance(failure, CancelledError):
        task = current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(failure, KeyboardInterrupt | SystemExit | GeneratorExit)


def shown(value: object, most_characters: int = MOST_CHARACTERS) -> str:
    """Return the beginning of the ``repr`` of a foreign value, as plain text; never raises.

    If it has none, its type is named; an integer of more than 4,300 digits has none.
    """
    return _beginning(repr, value, most_characters)


def reason_of(failure: BaseException) -> str:
    """Return the beginning of the message of an exception, as plain text; never raises."""
    return _beginning(str, failure, MOST_CHARACTERS)


def on_one_line(text: str) -> str:
    """Return a text, with escapes if it has line breaks or other characters that do not print."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _beginning(form: Callable[[object], str], value: object, most_characters: int) -> str:
    try:
        text = form(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    # Canonical JSON has no lone surrogates.
    return text[:most_characters].encode("utf-8", "backslashreplace").decode()
