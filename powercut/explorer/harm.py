"""Harm: whether a failure loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from oracles.violation import LostAck, Violation
from powercut.explorer.check_violation import NOT_ENDED
from powercut.explorer.crash_state import disks_along, image_at, killed_along
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.cache.operation import Sync
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

_JUDGED_MOMENTS: Final = 24
"""The numbers of acknowledgements with which the failures of one cause under a model are judged."""

_EARLIER_MOMENTS: Final = 64
_EARLIER_BARRIERS: Final = 16
_UNSYNCED_OPERATIONS: Final = 16
_Text: TypeAlias = tuple[str, str]


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

    A kill loses nothing that was written. If it leaves a file empty that had content at the last
    acknowledgement, and the check did not find the same there, the program has destroyed the old
    value. That is corruption, also if the check finds the same on an older disk without the file.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self._workload, self._model = exploration.workload, exploration.model
        self._checker = exploration.checker
        self._of_older: dict[int, tuple[set[_Text], Iterator[_Text | None]]] = {}
        self._emptied: dict[tuple[int, object], bool] = {}

    def of(self, failure: Failure) -> Harm | None:
        """Return the harm of a failure; None if the time is over and it needs more checks."""
        violation = failure.violation
        if isinstance(violation, LostAck):
            return Harm.LOST_ACKNOWLEDGEMENT
        if failure.entries not in self._of_older:
            self._of_older[failure.entries] = set(), self._older(failure.entries)
        found, others = self._of_older[failure.entries]
        while _text(violation) not in found:
            if self._checker.is_over(self._exploration):
                return None
            try:
                older = next(others)
            except StopIteration:
                return Harm.CORRUPTION
            if older is not None:
                found.add(older)
        return Harm.CORRUPTION if self._is_emptied(failure) else Harm.LOST_ACKNOWLEDGEMENT

    def shown_first(self, failures: Sequence[Failure]) -> list[Failure]:
        """Return the failures; the one that is shown comes first.

        It is the simplest that does the worst harm, of those with as many crashes as the simplest
        of all; if that one is a kill, of the kills.
        """
        first = failures[0]
        alike = (
            each
            for each in self.judged(failures)
            if len(each.crashes) == len(first.crashes)
            and each.needs_power_cut <= first.needs_power_cut
        )
        shown = max(alike, key=lambda each: [None, *Harm].index(self.of(each)))
        return [shown, *[each for each in failures if each is not shown]]

    @staticmethod
    def judged(failures: Sequence[Failure]) -> Iterator[Failure]:
        """Yield the failures of one cause under one model whose harms are decided.

        Those with equal acknowledgements are compared with the same disks, so one more costs no
        check. Those with the numbers of acknowledgements that come first are taken.
        """
        moments: set[int] = set()
        for failure in failures:
            if len(moments) < _JUDGED_MOMENTS:
                moments.add(failure.entries)
            if failure.entries in moments:
                yield failure

    def _is_emptied(self, failure: Failure) -> bool:
        """Return whether a kill does harm because the program has emptied a file.

        The file had content at the last acknowledgement.
        """
        point, *others = failure.crashes
        if others or failure.needs_power_cut or not failure.entries:
            return False
        if failure.state not in self._emptied:
            killed = image_at(self._workload.journal, self._model, point)
            self._emptied[failure.state] = self._has_emptied(killed, failure)
        return self._emptied[failure.state]

    def _has_emptied(self, killed: Image, failure: Failure) -> bool:
        journal, entries = self._workload.journal, failure.entries
        number = self._workload.history.entries[entries - 1].after
        state = entries, killed_along(journal, self._model, {number})[number]
        failing = (each for each in self._exploration.failures if each.state == state)
        if any(_text(each.violation) == _text(failure.violation) for each in failing):
            return False
        ((_, acknowledged),) = disks_along(journal, self._model, {number})
        before = _sizes(acknowledged)
        return any(before.get(path) and not size for path, size in _sizes(killed).items())

    def _older(self, entries: int) -> Iterator[_Text | None]:
        """Yield the violations of the disks that were right before the latest of these entries.

        The latest disk comes first, because most failures leave that one. None is yielded for a
        disk that was not right then, and for one that is right now as well.
        """
        history, journal = self._workload.history, self._workload.journal
        first = max(0, entries - _EARLIER_MOMENTS)
        acknowledged = {0} if first == 0 and entries else set[int]()
        acknowledged |= {entry.after for entry in history.entries[first : max(0, entries - 1)]}
        end = history.entries[entries - 1].after if entries else 0
        synced = [number for number in range(1, end) if isinstance(journal[number - 1], Sync)]
        unsynced = range(max([1, *synced]), end + 1)[-_UNSYNCED_OPERATIONS:]
        moments = acknowledged | {*synced[-_EARLIER_BARRIERS:], *unsynced}
        for number, image in reversed([*disks_along(journal, self._model, moments)]):
            then = min(history.entries_by(number, returned=True), entries - 1)
            violation = None
            if number in acknowledged or self._violation(image, then) is None:
                violation = self._violation(image, entries)
            yield None if violation is None else _text(violation)

    def _violation(self, image: Image, entries: int) -> Violation | None:
        known = self._workload.history.known(entries)
        return self._checker.violation(Disk(image, self._model), known)


def _sizes(image: Image) -> dict[str, int]:
    """Return the size of each regular file in bytes, by its path."""
    return {path: inode.size for path, inode in image.tree() if inode.is_file}


def _text(violation: Violation) -> _Text:
    if violation.statement == NOT_ENDED:
        # Its line is any of those of a loop.
        return violation.property_name, NOT_ENDED
    return violation.property_name, str(violation)
