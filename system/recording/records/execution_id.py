"""Ids of executions: ``exec-`` and 16 lower-case hex digits (docs/file-formats.md, Records)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from system.foreign import shown
from system.ports import Ids

EXECUTION_ID: Final = re.compile("exec-[0-9a-f]{16}")

PREFIX: Final = "exec-"
_DIGITS: Final = 16
_SAMPLED_DIGITS: Final = 8


def is_execution_id(value: object) -> bool:
    """Return whether a value is the id of an execution."""
    return isinstance(value, str) and EXECUTION_ID.fullmatch(value) is not None


def new_execution_id(ids: Ids, is_taken: Callable[[str], bool]) -> str:
    """Return a new id for which ``is_taken`` is false."""
    while True:
        execution_id = PREFIX + ids.random_hex(_DIGITS)
        if not is_taken(execution_id):
            return execution_id


def is_sampled(execution_id: str, rate: float) -> bool:
    """Return whether an execution is recorded at this rate, from 0.0 to 1.0.

    The decision depends on the id alone, so it is made before anything is written.
    """
    digits = execution_id[len(PREFIX) : len(PREFIX) + _SAMPLED_DIGITS]
    return int(digits, 16) < rate * 2**32


def checked_rate(rate: object) -> float:
    """Return a sample rate; raises ``ValueError`` for anything but a number from 0.0 to 1.0."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
        raise ValueError(f"sample_rate is {shown(rate)}; give a number from 0.0 to 1.0")
    return rate
