"""What the exit code of ``powercut`` says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The codes of every command."""

    CLEAN = 0
    VIOLATION = 1
    USAGE = 2
    DIVERGED = 3
    GOAL_MISSED = 4
    HARNESS_FAILED = 70
    INTERRUPTED = 130
