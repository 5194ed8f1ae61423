"""``breakpoint()`` in code that runs many times, and whose output is dropped."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import currentframe

from powercut.place import running_at
from sim.errors import EscapedSimulation


def refuse_breakpoint(*_arguments: object, **_options: object) -> None:
    """Raise ``EscapedSimulation``, unless the user has switched breakpoints off.

    Take it as ``sys.breakpointhook``.
    """
    if os.environ.get("PYTHONBREAKPOINT") != "0":
        raise EscapedSimulation(
            f"breakpoint() was called{running_at(currentframe())}; the output of many runs and "
            "checks is dropped, so no prompt would be seen; `powercut replay FILE` repeats one "
            "failure, and stops there"
        )


def _pass_over(*_arguments: object, **_options: object) -> None:
    """Do nothing."""


@contextmanager
def breakpoints_refused() -> Iterator[None]:
    """Refuse ``breakpoint()`` in the block."""
    with _hooked(refuse_breakpoint):
        yield


@contextmanager
def breakpoints_passed_over() -> Iterator[None]:
    """Let ``breakpoint()`` do nothing in the block, which repeats a run that was debugged."""
    with _hooked(_pass_over):
        yield


@contextmanager
def _hooked(hook: Callable[..., object]) -> Iterator[None]:
    before, sys.breakpointhook = sys.breakpointhook, hook
    try:
        yield
    finally:
        sys.breakpointhook = before
