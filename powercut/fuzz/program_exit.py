"""Calls of ``sys.exit`` by the system: failures of a run, and never the end of the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ProgramExit(Exception):
    """The system called ``sys.exit``, in a process that it shares with the harness.

    Cause: a system that gives up by ending its process. Cure: raise another exception there, or
    name this one in ``refusals`` if a recovery may end so under a fault.
    """


@contextmanager
def exits_are_failures() -> Iterator[None]:
    """Raise ``ProgramExit`` in place of a ``SystemExit``, with its traceback."""
    try:
        yield
    except SystemExit as left:
        failure = ProgramExit(f"the system called sys.exit({left.code!r})")
        raise failure.with_traceback(left.__traceback__) from None
