"""Harm: whether a failure loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

from enum import StrEnum

from oracles.violation import LostAck
from powercut.explorer.crash_state import image_after
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.disk import Disk

_EARLIER_MOMENTS = 64


class Harm(StrEnum):
    """The harm that a failure does, the lesser one first."""

    LOST_ACKNOWLEDGEMENT = "lost acknowledgement"
    """The disk is one that was right earlier: before the last acknowledged values."""
    CORRUPTION = "corruption"
    """The disk was never right: the old value is gone as well."""


def harm_of(exploration: Exploration, failure: Failure) -> Harm:
    """Return the harm of a failure.

    A ``LostAck`` says so itself. For any other violation the disk is checked again, as if the
    crash had come earlier in the history.
    """
    if isinstance(failure.violation, LostAck):
        return Harm.LOST_ACKNOWLEDGEMENT
    checker, workload, model = exploration.checker, exploration.workload, exploration.model
    if not failure.entries:
        return Harm.CORRUPTION
    history = workload.history
    image = image_after(
        workload.journal,
        model,
        failure.crashes,
        lambda disk: checker.violation(disk, history.known(failure.entries)),
    )
    first = max(0, failure.entries - _EARLIER_MOMENTS)
    for entries in range(failure.entries - 1, first - 1, -1):
        if checker.violation(Disk(image, model), history.known(entries)) is None:
            return Harm.LOST_ACKNOWLEDGEMENT
    return Harm.CORRUPTION
