"""Images at the power cut right behind a write of which a failing image has lost a part.

No barrier fits between the write and that power cut. A sample may have the torn write only at
later crashes, and then a barrier between seems to prevent it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.explorer.crash_state import advanced, at_start, comparable, unsynced_along
from powercut.explorer.large_writes import fitting
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuse.crash_search import MOST_SECTORS
from powercut.fuse.found_image import Found, rank_of
from sim.disk.cache.operation import Write
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError

_OF_WRITE: Final = 3
"""The images behind one write; they are made from the failing images that lose least."""


class _Damage(NamedTuple):
    """The part of one write that a failing image has lost.

    ``survivors`` loses this part of the unsynced pieces ``micros``, and nothing else. ``losses`` is
    the number of pieces that the failing image has lost in all.
    """

    micros: list[MicroOperation]
    survivors: SurvivorSet
    losses: int


def behind_writes(
    workload: RecordedWorkload, model: str, failing: Iterable[Found]
) -> Iterator[Found]:
    """Yield images behind each write of which failing images of later crashes lose a part.

    They lose this part, and nothing else. ``order`` is the number of pieces that the failing image
    loses.
    """
    journal, history = workload.journal, workload.history
    fitted = fitting(model_named(model), journal, MOST_SECTORS)
    damages = _damages(workload, fitted, failing)
    space = None
    for number, unsynced in advanced(at_start(journal, fitted), 0, journal, damages):
        space = StateSpace(unsynced, space)
        places = _places(space.micros, number)
        entries = history.entries_by(number, returned=False)
        for damage in damages[number][:_OF_WRITE]:
            survivors = _moved(damage, places)
            try:
                key = space.state_of(survivors).key
            except HarnessError:  # not allowed here
                continue
            crash = CrashPoint(number, Phase.AFTER, CrashKind.POWER_CUT, survivors)
            rank = rank_of(space.ordering, survivors)
            yield Found((entries, key), rank, damage.losses, model, crash, entries)


def _damages(
    workload: RecordedWorkload, model: PersistenceModel, failing: Iterable[Found]
) -> dict[int, list[_Damage]]:
    """Return the damages by the number of their write, those that lose least first."""
    at: dict[int, list[Found]] = {}
    for found in failing:
        if found.crash.kind is CrashKind.POWER_CUT:
            at.setdefault(found.done, []).append(found)
    damages: dict[int, list[_Damage]] = {}
    for done, micros in unsynced_along(workload.journal, model, at):
        for found in at[done]:
            for number, survivors in _parts(micros, found.crash.survivors).items():
                behind = number, workload.history.entries_by(number, returned=False)
                is_write = number > 0 and isinstance(workload.journal[number - 1], Write)
                if is_write and behind < (done, found.entries):
                    damage = _Damage(micros, survivors, found.losses)
                    damages.setdefault(number, []).append(damage)
    for those in damages.values():
        those.sort(key=lambda damage: damage.losses)
    return damages


def _parts(micros: Sequence[MicroOperation], survivors: SurvivorSet) -> dict[int, SurvivorSet]:
    """Return the losses of each operation of which a power cut loses a part, by its number."""
    of_operation = Counter(piece.operation for piece in micros)
    lost, torn, stale = survivors
    parts: dict[int, SurvivorSet] = {}
    for number in {micros[index].operation for index in (*lost, *dict(torn), *stale)}:
        part = SurvivorSet(
            tuple(index for index in lost if micros[index].operation == number),
            tuple((index, kept) for index, kept in torn if micros[index].operation == number),
            tuple(index for index in stale if micros[index].operation == number),
        )
        if part.torn or part.stale or len(part.lost) < of_operation[number]:
            parts[number] = part
    return parts


def _places(micros: Sequence[MicroOperation], number: int) -> dict[MicroOperation, int]:
    """Return the places of the pieces of one operation among ``micros``."""
    return {
        comparable(piece): place for place, piece in enumerate(micros) if piece.operation == number
    }


def _moved(damage: _Damage, places: Mapping[MicroOperation, int]) -> SurvivorSet:
    """Return the set that loses the same pieces of one write, whose places are given.

    A piece that has none gets the number -1, with which no set is allowed.
    """

    def moved(index: int) -> int:
        return places.get(comparable(damage.micros[index]), -1)

    lost, torn, stale = damage.survivors
    return SurvivorSet(
        tuple(sorted(moved(index) for index in lost)),
        tuple((moved(index), kept) for index, kept in torn),
        tuple(moved(index) for index in stale),
    )
