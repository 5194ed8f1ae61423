"""The failures of a recording that remain possible when its journal has further barriers.

Exploring the changed journal would run the check again. A barrier makes some images impossible
and no others possible, so it is enough to find the failing images that are still possible. If all
images of the recording are known, and are few, and no recovery was crashed, those of the changed
journal are searched anew. Otherwise each failure is sought at its own crash point, and an equal
image of another crash point is missed. On btrfs, where the first barrier begins a log tree,
images that only the changed journal allows are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Final

from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.explorer.crash_state import (
    advanced,
    at_start,
    comparable,
    done_at,
    unsynced_along,
)
from powercut.explorer.missing_barrier import done_in
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from powercut.fuse.crash_search import search
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import ForgetName, MicroOperation, MoveName, NameChange
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError

_MOST_SEARCHED: Final = 1000
"""The images of a recording above which those of a changed journal are not searched anew."""

_MOST_ADDED: Final = 4
"""The pieces that only the changed journal has, above which their losses are not combined."""


class FailuresLeft:
    """The failures of one exploration, each with the pieces that its power cut loses.

    ``recovered`` has the keys of the images, by their crash point, whose recovery was crashed.
    """

    def __init__(self, exploration: Exploration, recovered: Mapping[CrashPoint, object]) -> None:
        self._exploration = exploration
        self._recovered = recovered
        self._model: PersistenceModel = exploration.model
        self._journal: Journal = exploration.workload.journal
        self._by_number: dict[int, list[Failure]] = {}
        for failure in exploration.failures:
            self._by_number.setdefault(done_at(failure.crashes[0]), []).append(failure)
        self._micros = dict(unsynced_along(self._journal, self._model, self._by_number))
        # The images of a recovery are found with another history.
        is_known = exploration.exhaustive and 0 < exploration.built <= _MOST_SEARCHED
        self._is_searched = is_known and not recovered

    def of(self, changed: RecordedWorkload) -> Exploration:
        """Return the exploration of the workload with further barriers."""
        found = self._exploration
        failures = sorted(self._left(changed), key=lambda failure: failure.simplicity)
        return replace(
            found, workload=changed, failed=len(failures), failures=failures, deduced=True
        )

    def _left(self, changed: RecordedWorkload) -> Iterator[Failure]:
        if self._is_searched:
            again = search(changed.journal, changed.history, self._model)
            if again.exhaustive:
                crashes: dict[tuple[int, object], CrashPoint]
                crashes = {found.key: found.crash for found in again.found}
                for failure in self._exploration.failures:
                    if failure.state in crashes:
                        yield replace(failure, crashes=(crashes[failure.state],))
                return
        yield from self._moved(changed)

    def _moved(self, changed: RecordedWorkload) -> Iterator[Failure]:
        """Yield the failures whose crash point leaves the same image in the changed journal."""
        numbers = _numbers(self._journal, changed.journal)
        waiting: dict[int, list[tuple[int, Failure]]] = {}
        for number, failures in self._by_number.items():
            for failure in failures:
                done = done_in(changed, numbers, self._exploration.workload, failure)
                waiting.setdefault(done, []).append((number, failure))
        start = at_start(changed.journal, self._model)
        for done, unsynced in advanced(start, 0, changed.journal, waiting):
            space = StateSpace(unsynced)
            # All failures of this moment have the crash after the same operation of the recording.
            places = _Places(self._micros[waiting[done][0][0]], numbers, space.micros)
            for _, failure in waiting[done]:
                point = failure.crashes[0]
                moved = _at(point, done, numbers)
                if point.kind is CrashKind.POWER_CUT:
                    first = failure.image if len(failure.crashes) == 1 else self._recovered[point]
                    possible = places.moved(point.survivors)
                    survivors = next((it for it in possible if _leads_to(space, it, first)), None)
                    if survivors is None:
                        continue
                    moved = replace(moved, survivors=survivors)
                yield replace(failure, crashes=(moved, *failure.crashes[1:]))


def _numbers(journal: Journal, changed: Journal) -> list[int]:
    """Return the number in ``changed`` of each operation of ``journal``, from 0 on."""
    numbers = [0]
    for number, operation in enumerate(changed, 1):
        if len(numbers) <= len(journal) and operation is journal[len(numbers) - 1]:
            numbers.append(number)
    assert len(numbers) == len(journal) + 1, "barriers were inserted, and nothing else"
    return numbers


def _at(point: CrashPoint, done: int, numbers: Sequence[int]) -> CrashPoint:
    if point.phase is Phase.DURING:
        return replace(point, operation=numbers[point.operation])
    if not done:
        return point
    return replace(point, operation=done, phase=Phase.AFTER)


class _Places:
    """The places of the pieces ``micros`` of a recording among those of the changed journal.

    A barrier may change the pieces that a later change of names has. A rename that it cuts in parts
    is lost with all of them.
    """

    def __init__(
        self,
        micros: Sequence[MicroOperation],
        numbers: Sequence[int],
        changed: Sequence[MicroOperation],
    ) -> None:
        index = {comparable(piece): (place,) for place, piece in enumerate(changed)}
        parts: dict[int, tuple[int, ...]] = {}
        for place, piece in enumerate(changed):
            parts[piece.operation] = (*parts.get(piece.operation, ()), place)
        self._places = [
            index.get(same, parts.get(same.operation, ()) if isinstance(same, MoveName) else ())
            for same in (comparable(piece, numbers) for piece in micros)
        ]
        known = set(chain.from_iterable(self._places))
        self._added = [
            place
            for place, piece in enumerate(changed)
            if isinstance(piece, NameChange | ForgetName) and place not in known
        ]

    def moved(self, survivors: SurvivorSet) -> Iterator[SurvivorSet]:
        """Yield the survivor sets that lose these pieces, as far as they are still unsynced.

        Pieces that only the changed journal has survive in the first one, and are lost in others.
        """
        places = self._places
        lost = [place for each in survivors.lost for place in places[each]]
        torn = tuple((place, kept) for each, kept in survivors.torn for place in places[each])
        stale = tuple(place for each in survivors.stale for place in places[each])
        for more in self._losses():
            yield SurvivorSet(tuple(sorted((*lost, *more))), torn, stale)

    def _losses(self) -> Iterator[tuple[int, ...]]:
        """Yield the sets of added pieces that are lost together."""
        count = len(self._added)
        for number in range(count + 1) if count <= _MOST_ADDED else (0, count):
            yield from combinations(self._added, number)


def _leads_to(space: StateSpace, survivors: SurvivorSet, image: object) -> bool:
    """Return whether the model allows a survivor set, and it leaves this image."""
    try:
        return space.state_of(survivors).key == image
    except HarnessError:
        return False
