"""The pieces that failures need to be lost, and the failures that an inserted barrier prevents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from powercut.explorer.crash_state import (
    advanced,
    at_start,
    comparable,
    done_at,
    is_left,
    lost_pieces,
)
from powercut.explorer.missing_barrier import Insertion, done_in
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Failure
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.unsynced import Unsynced

_MOST_PLACES: Final = 32
"""The places of a journal from which it is read again with a barrier inserted after them."""


class LostPieces:
    """The pieces that failures need to be lost, by the operation after which the power is cut.

    ``failures`` are power cuts of ``workload`` under ``model``.
    """

    def __init__(
        self, workload: RecordedWorkload, model: PersistenceModel, failures: Sequence[Failure]
    ) -> None:
        self._workload, self._model = workload, model
        self._lost: dict[int, list[tuple[Failure, list[MicroOperation]]]] = {}
        # The unsynced pieces at some places, which an insertion after them does not change.
        self._unchanged: list[tuple[int, Unsynced]] = []
        by_number: dict[int, list[Failure]] = {}
        for failure in failures:
            by_number.setdefault(done_at(failure.crashes[0]), []).append(failure)
        last = max(by_number, default=0)
        kept = range(0, last + 1, last // _MOST_PLACES + 1)
        journal = workload.journal
        begin = at_start(journal, model)
        for number, unsynced in advanced(begin, 0, journal, {*by_number, *kept}):
            if number in kept:
                self._unchanged.append((number, unsynced.copy()))
            if number in by_number:
                micros = unsynced.micros
                self._lost[number] = [
                    (each, lost_pieces(micros, each.crashes[0])) for each in by_number[number]
                ]

    def prevented(self, insertion: Insertion) -> list[Failure]:
        """Return the failures that lose a piece that is durable after the insertion."""
        if not insertion.syncs:
            return []
        changed, numbers = insertion.workload, insertion.numbers
        moved = {
            number: [done_in(changed, numbers, self._workload, each) for each, _ in failures]
            for number, failures in self._lost.items()
        }
        first = min(position for position, _, _ in insertion.syncs)
        start, unsynced = next(each for each in reversed(self._unchanged) if each[0] <= first)
        wanted = {each for those in moved.values() for each in those if each > first}
        left = {
            number: frozenset(map(comparable, then.micros))
            for number, then in advanced(unsynced.copy(), start, changed.journal, wanted)
        }
        return [
            failure
            for number, failures in self._lost.items()
            for (failure, lost), then in zip(failures, moved[number], strict=True)
            if then > first and not all(is_left(piece, left[then], numbers) for piece in lost)
        ]
