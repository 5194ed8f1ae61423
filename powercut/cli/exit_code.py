"""The exit codes of ``powercut``."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The meaning of each exit code; ``powercut --help`` lists them."""

    CLEAN = 0
    VIOLATION = 1
    USAGE = 2
    DIVERGED = 3
    GOAL_MISSED = 4
    INTERNAL_ERROR = 70
    INTERRUPTED = 130
    NO_READER = 141
