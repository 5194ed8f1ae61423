"""The error for a target with which no run can begin or go on."""

from __future__ import annotations

from typing import Final

from sim.errors import HarnessError

DEPENDS_ON_MORE: Final = (
    "the target depends on more than its choices, such as data that an earlier run has left in a "
    "module, id(), hash(), or the order of a set"
)
"""The reason why a run differs when it is repeated."""


class TargetMistake(HarnessError):
    """A target fails at its first start, has no possible action, or chooses unusable arguments.

    Cause: a mistake in ``recover``, ``check_recovered``, an ``ActionKind``, or in the system; or
    ``propose``, ``ready`` or ``before_step`` has raised an exception.
    Cure: the target starts on an empty disk, its check passes there, one of its actions is ready
    at any time, and arguments of actions are JSON data. Only actions, recoveries and checks fail.
    """


class FailsAtStart(TargetMistake):
    """A target fails at its first start, before any crash; its exception is the cause of this one.

    Cause and cure: as for every ``TargetMistake``; of a mutant, it may be the planted bug.
    """
