"""The error for a target with which no run can begin or go on."""

from __future__ import annotations

from sim.errors import HarnessError


class TargetMistake(HarnessError):
    """A target fails at its first start, has no possible action, or chooses unusable arguments.

    Cause: a mistake in ``recover``, ``check_recovered``, an ``ActionKind``, or in the system; or
    ``propose``, ``ready`` or ``before_step`` has raised an exception.
    Cure: the target starts on an empty disk, its check passes there, one of its actions is ready
    at any time, and arguments of actions are JSON data. Only actions, recoveries and checks fail.
    """
