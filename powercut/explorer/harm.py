"""Harm: whether a failure loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from faults.crash_point import CrashKind
from oracles.violation import LostAck, TornRecord
from powercut.explorer.crash_state import ChangedRecovery, disks_along, done_at, unsynced_along
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

_JUDGED_FAILURES: Final = 24
"""The failures of one cause under a model whose harms are decided by checks."""

_FEWER: Final = 16
"""The smaller numbers of acknowledgements with which the disk of one failure is checked."""


class Harm(StrEnum):
    """The harm that a failure does, the lesser one first."""

    LOST_ACKNOWLEDGEMENT = "lost acknowledgement"
    """The disk would be right if less had been acknowledged."""
    CORRUPTION = "corruption"
    """It would not: the old value is gone as well."""


class Harms:
    """Decides the harms of the failures of one workload, by their models.

    A ``LostAck`` and a ``TornRecord`` say so themselves. After any other violation, whatever its
    text, the check runs on the same disk with fewer acknowledgements. If it passes, the others are
    lost, and nothing else is. Acknowledgements whose operations have all survived always count,
    because a crash may not lose them; but not those at which the check fails without a crash.
    """

    def __init__(self, explorations: Mapping[str, Exploration]) -> None:
        self._explorations = explorations
        self._found: dict[tuple[str, object], Harm | None] = {}
        self._is_right: dict[int, bool] = {}

    def of(self, model: str, failure: Failure) -> Harm | None:
        """Return the harm of a failure under a model.

        None if it is not decided: the time is over, too many acknowledgements may be lost, or the
        check is that of a run, which repeats the run whatever was acknowledged.
        """
        if isinstance(failure.violation, LostAck | TornRecord):
            is_torn = isinstance(failure.violation, TornRecord)
            return Harm.CORRUPTION if is_torn else Harm.LOST_ACKNOWLEDGEMENT
        found, key = self._explorations[model], (model, failure.state)
        if not found.checker.takes_known:
            return None
        if key not in self._found and found.checker.is_over(found):
            return None
        if key not in self._found:
            self._found[key] = self._decided(found, failure)
        return self._found[key]

    def shown_first(self, model: str, failures: Sequence[Failure]) -> list[Failure]:
        """Return the failures under a model; the one that is shown comes first.

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
        shown = max(alike, key=lambda each: [None, *Harm].index(self.of(model, each)))
        return [shown, *[each for each in failures if each is not shown]]

    @staticmethod
    def judged(failures: Sequence[Failure]) -> Iterator[Failure]:
        """Yield the failures of one cause under one model whose harms are decided.

        These are the simplest of each text, then the simplest of all, up to a number.
        """
        named = LostAck | TornRecord
        others = [each for each in failures if not isinstance(each.violation, named)]
        by_text: dict[str, Failure] = {}
        for each in others:
            by_text.setdefault(str(each.violation), each)
        chosen = [*failures[:1], *by_text.values(), *others][:_JUDGED_FAILURES]
        states = {each.state for each in chosen}
        for each in failures:
            if isinstance(each.violation, named) or each.state in states:
                yield each

    def _decided(self, found: Exploration, failure: Failure) -> Harm | None:
        fewer = range(self._least(found, failure), failure.entries)
        if not fewer:
            return Harm.CORRUPTION
        try:
            image = found.checker.image(found, failure)
        except ChangedRecovery:
            return None
        tried = [*fewer[:1], *fewer[:0:-1]][:_FEWER]
        if any(self._passes(found, image, number) for number in tried):
            return Harm.LOST_ACKNOWLEDGEMENT
        return Harm.CORRUPTION if len(tried) == len(fewer) else None

    def _least(self, found: Exploration, failure: Failure) -> int:
        """Return the number of entries whose values a crash may not lose.

        A crash of a recovery may lose any of them that the recovery changes.
        """
        point, *others = failure.crashes
        history, journal = found.workload.history, found.workload.journal
        least = 0 if others else failure.entries
        if least and point.kind is CrashKind.POWER_CUT:
            ((_, micros),) = unsynced_along(journal, found.model, {done_at(point)})
            lost, torn, stale = point.survivors
            damaged = (*lost, *(index for index, _ in torn), *stale)
            first = min((micros[index].operation for index in damaged), default=len(journal) + 1)
            least = min(least, history.entries_by(first - 1, returned=True))
        tried = range(least, 0, -1)[:_FEWER]
        return next((number for number in tried if self._was_right(found, number)), 0)

    def _was_right(self, found: Exploration, entries: int) -> bool:
        """Return whether the check passes at the last of these entries, without a crash."""
        if entries not in self._is_right:
            number = found.workload.history.entries[entries - 1].after
            ((_, image),) = disks_along(found.workload.journal, found.model, {number})
            self._is_right[entries] = self._passes(found, image, entries)
        return self._is_right[entries]

    @staticmethod
    def _passes(found: Exploration, image: Image, entries: int) -> bool:
        known = found.workload.history.known(entries)
        return found.checker.violation(Disk(image, found.model), known) is None
