"""The failures of a recording that remain possible when its journal has further barriers.

Exploring the changed journal would run the check again. A barrier makes some images impossible
and no others possible, so it is enough to find the failing images that are still possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.explorer.crash_state import comparable, done_at, unsynced_along
from powercut.explorer.missing_barrier import done_in
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    FreeBlocks,
    GrowSize,
    MicroOperation,
    SetSize,
    WriteBlock,
    ZeroTail,
)
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.errors import HarnessError

_CONTENT = (CreateInode, WriteBlock, GrowSize, SetSize, ZeroTail, FreeBlocks, ChangeAttributes)


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

    def of(self, changed: RecordedWorkload) -> Exploration:
        """Return the exploration of the workload with further barriers."""
        found = self._exploration
        failures = sorted(self._left(changed), key=lambda failure: failure.simplicity)
        return replace(found, workload=changed, failed=len(failures), failures=failures)

    def _left(self, changed: RecordedWorkload) -> Iterator[Failure]:
        numbers = _numbers(self._journal, changed.journal)
        waiting: dict[int, list[tuple[int, Failure]]] = {}
        for number, failures in self._by_number.items():
            for failure in failures:
                done = done_in(changed, numbers, self._exploration.workload, failure)
                waiting.setdefault(done, []).append((number, failure))
        unsynced = Unsynced(self._model, changed.journal.image.platter)
        for done in range(max(waiting, default=-1) + 1):
            if done:
                unsynced.advance(changed.journal[done - 1], done)
            if done not in waiting:
                continue
            space = StateSpace(unsynced)
            index = {comparable(piece): place for place, piece in enumerate(space.micros)}
            for number, failure in waiting[done]:
                point = failure.crashes[0]
                moved = _at(point, done, numbers)
                if point.kind is CrashKind.POWER_CUT:
                    survivors = _moved(self._micros[number], numbers, point.survivors, index)
                    first = failure.image if len(failure.crashes) == 1 else self._recovered[point]
                    if survivors is None or not _leads_to(space, survivors, first):
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


def _moved(
    micros: Sequence[MicroOperation],
    numbers: Sequence[int],
    survivors: SurvivorSet,
    index: Mapping[MicroOperation, int],
) -> SurvivorSet | None:
    """Return the survivor set with each piece renumbered by ``index``; None if it is impossible.

    It is impossible if it loses a piece that is durable now. Pieces of content are excepted: in
    the image no path leads to their file, so losing them has no effect.
    """

    def place(each: int) -> int | None:
        return index.get(comparable(micros[each], numbers))

    for each in survivors.lost:
        if place(each) is None and not isinstance(micros[each], _CONTENT):
            return None
    lost = [place(each) for each in survivors.lost]
    torn = [(place(each), kept) for each, kept in survivors.torn]
    stale = [place(each) for each in survivors.stale]
    return SurvivorSet(
        tuple(sorted(each for each in lost if each is not None)),
        tuple((each, kept) for each, kept in torn if each is not None),
        tuple(each for each in stale if each is not None),
    )


def _leads_to(space: StateSpace, survivors: SurvivorSet, image: object) -> bool:
    """Return whether the model allows a survivor set, and it leaves this image."""
    try:
        return space.state_of(survivors).key == image
    except HarnessError:
        return False
