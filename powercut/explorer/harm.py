"""Harm: whether a failure loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from oracles.violation import LostAck, Violation
from powercut.explorer.crash_state import disks_along
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.cache.operation import Sync
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

_EARLIER_MOMENTS: Final = 64
_EARLIER_BARRIERS: Final = 16
_UNSYNCED_OPERATIONS: Final = 16


class Harm(StrEnum):
    """The harm that a failure does, the lesser one first."""

    LOST_ACKNOWLEDGEMENT = "lost acknowledgement"
    """To the check, the disk is one that was right earlier."""
    CORRUPTION = "corruption"
    """The disk was never right: the old value is gone as well."""


class Harms:
    """Decides the harms of the failures of one workload, explored under any model.

    A ``LostAck`` says so itself. Any other violation is compared with those that the check
    finds, with the same acknowledged values, on disks that were right earlier: at the start, at
    each acknowledgement, and where the check passes behind each barrier, and behind each
    operation since the last one.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._workload, self._model = exploration.workload, exploration.model
        self._checker = exploration.checker
        self._of_older: dict[int, frozenset[tuple[str, str]]] = {}

    def of(self, failure: Failure) -> Harm | None:
        """Return the harm of a failure; None if the time is over and it needs more checks."""
        violation = failure.violation
        if isinstance(violation, LostAck):
            return Harm.LOST_ACKNOWLEDGEMENT
        if failure.entries not in self._of_older:
            older = self._older(failure.entries)
            if older is None:
                return None
            self._of_older[failure.entries] = frozenset(older)
        if _text(violation) in self._of_older[failure.entries]:
            return Harm.LOST_ACKNOWLEDGEMENT
        return Harm.CORRUPTION

    def _older(self, entries: int) -> set[tuple[str, str]] | None:
        """Return the violations of the disks that were right before the latest of these entries.

        None if the time is over.
        """
        history, journal = self._workload.history, self._workload.journal
        first = max(0, entries - _EARLIER_MOMENTS)
        acknowledged = {0} if first == 0 and entries else set[int]()
        acknowledged |= {entry.after for entry in history.entries[first : max(0, entries - 1)]}
        end = history.entries[entries - 1].after if entries else 0
        synced = [number for number in range(1, end) if isinstance(journal[number - 1], Sync)]
        unsynced = range(max([1, *synced]), end)[-_UNSYNCED_OPERATIONS:]
        moments = acknowledged | {*synced[-_EARLIER_BARRIERS:], *unsynced}
        found = set()
        for number, image in disks_along(journal, self._model, moments):
            if self._checker.is_over(self._exploration):
                return None
            then = history.entries_by(number, returned=True)
            if number in acknowledged or self._violation(image, then) is None:
                violation = self._violation(image, entries)
                if violation is not None:
                    found.add(_text(violation))
        return found

    def _violation(self, image: Image, entries: int) -> Violation | None:
        known = self._workload.history.known(entries)
        return self._checker.violation(Disk(image, self._model), known)


def _text(violation: Violation) -> tuple[str, str]:
    return violation.property_name, str(violation)
