"""Harm: whether a failure loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from oracles.violation import LostAck, Violation
from powercut.explorer.crash_state import disks_along
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.disk import Disk

_EARLIER_MOMENTS: Final = 64


class Harm(StrEnum):
    """The harm that a failure does, the lesser one first."""

    LOST_ACKNOWLEDGEMENT = "lost acknowledgement"
    """To the check, the disk is one that was right earlier."""
    CORRUPTION = "corruption"
    """The disk was never right: the old value is gone as well."""


class Harms:
    """Tells the harms of the failures of one exploration.

    A ``LostAck`` says so itself. Any other violation is compared with those that the check
    finds, with the same acknowledged values, on the disks of earlier acknowledgements.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._of_older: dict[int, frozenset[tuple[str, str]]] = {}

    def of(self, failure: Failure) -> Harm:
        """Return the harm of a failure."""
        violation = failure.violation
        if isinstance(violation, LostAck):
            return Harm.LOST_ACKNOWLEDGEMENT
        if failure.entries not in self._of_older:
            self._of_older[failure.entries] = frozenset(self._older(failure.entries))
        if _text(violation) in self._of_older[failure.entries]:
            return Harm.LOST_ACKNOWLEDGEMENT
        return Harm.CORRUPTION

    def _older(self, entries: int) -> set[tuple[str, str]]:
        """Return the violations of the disks before each of the latest of so many entries."""
        exploration, history = self._exploration, self._exploration.workload.history
        first = max(0, entries - _EARLIER_MOMENTS)
        moments = {0} if first == 0 and entries else set()
        moments |= {entry.after for entry in history.entries[first : max(0, entries - 1)]}
        found = (
            exploration.checker.violation(Disk(image, exploration.model), history.known(entries))
            for image in disks_along(exploration.workload.journal, exploration.model, moments)
        )
        return {_text(violation) for violation in found if violation is not None}


def _text(violation: Violation) -> tuple[str, str]:
    return violation.property_name, str(violation)
