"""Missing barriers: an fsync that a program does not do, as a change of its journal.

A missing barrier is stated in terms of the program: after each event at one line, before the
next event at another one. In a loop it is therefore inserted in every round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History
from powercut.crash_text import Names, names_along, names_at
from powercut.explorer.crash_state import (
    comparable,
    done_at,
    is_possible,
    lost_pieces,
    unsynced_along,
)
from powercut.explorer.event import Event, Site, events_of
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.cache.operation import Create, Link, Operation, Rename, Sync, Unlink, Write
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import MoveName
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet

_INSERTED: Final = "<missing barrier>"


class Synced(Enum):
    """The inode that a missing barrier makes durable, seen from an operation."""

    FILE = "its file"
    OLD_DIRECTORY = "the directory that it moves a file away from"
    DIRECTORY = "the directory of its name"

    def inode_of(self, operation: Operation) -> int:
        """Return the number of the inode, or 0 if the operation has none."""
        match self, operation:
            case Synced.FILE, _:
                return operation.inode
            case Synced.DIRECTORY, Rename():
                return operation.to_directory
            case Synced.DIRECTORY, Create() | Link() | Unlink():
                return operation.directory
            case Synced.OLD_DIRECTORY, Rename() if operation.directory != operation.to_directory:
                return operation.directory
            case _:
                return 0


class MissingBarrier(NamedTuple):
    """An fsync of ``synced`` of each operation at ``after``, due before any event at ``before``."""

    synced: Synced
    after: Site
    before: Site


class Gap(NamedTuple):
    """A place in a workload where a barrier is missing.

    ``path`` is the file or directory to be synced, as it is called there. The barrier belongs
    between ``first`` and ``last``. ``others`` are the further paths for which it is due, at the
    same lines of the program or on like paths. ``more`` is the number of further places at which
    it is due for ``path``. ``barrier`` is the missing barrier, None where it does not matter.
    """

    path: str
    first: Event
    last: Event
    others: tuple[str, ...] = ()
    more: int = 0
    barrier: MissingBarrier | None = None


class Insertion(NamedTuple):
    """A workload with further barriers, made from another one, the original.

    ``numbers[n]`` is the number in ``workload`` of operation ``n`` of the original. ``syncs`` has
    for each barrier the numbers of operations and of entries before it in the original, and its
    inode.
    """

    workload: RecordedWorkload
    numbers: list[int]
    syncs: tuple[tuple[int, int, int], ...]


_Due: TypeAlias = tuple[tuple[int, Event], Event]
"""An inode with the operation for which a barrier is due, and the event before which it is."""


def insert(workload: RecordedWorkload, barrier: MissingBarrier) -> Insertion:
    """Return the workload with the barrier wherever it is due."""
    return _with(
        workload,
        tuple(
            (_position(workload, last), _entries_before(last), inode)
            for last, due in _due(workload, barrier)
            for inode in due
        ),
    )


def insert_behind(
    workload: RecordedWorkload, inodes_at: Callable[[Event], Iterable[int]]
) -> Insertion:
    """Return the workload with a barrier right behind each event, for its ``inodes_at``."""
    return _with(
        workload,
        tuple(
            (event.number, event.entries, inode)
            for event in events_of(workload)
            if event.operation is not None
            for inode in inodes_at(event)
        ),
    )


def insert_later(
    workload: RecordedWorkload, barrier: MissingBarrier, gap: Gap, last: Event
) -> RecordedWorkload:
    """Return the workload with the barrier wherever it is due, but in ``gap`` before ``last``."""
    assert gap.first.operation is not None, gap
    inode = barrier.synced.inode_of(gap.first.operation)
    earlier, later = (
        (_position(workload, event), _entries_before(event), inode) for event in (gap.last, last)
    )
    syncs = insert(workload, barrier).syncs
    return _with(workload, tuple(later if each == earlier else each for each in syncs)).workload


def is_inserted(operation: Operation) -> bool:
    """Return whether an operation is a barrier that ``insert`` has put into a journal."""
    return isinstance(operation, Sync) and operation.path == _INSERTED


def inserted_calls(workload: RecordedWorkload) -> int:
    """Return how many calls of fsync would make the inserted barriers of a workload.

    One call makes those for one path before one line of the program. If its lines are unknown,
    each barrier is a call.
    """
    following: Event | None = None
    ends: dict[int, Event] = {}
    for event in reversed([*events_of(workload)]):
        if event.operation is None or not is_inserted(event.operation):
            following = event
        elif following is not None:
            ends[event.number] = following
    along = zip(sorted(ends), names_along(workload.journal, ends), strict=True)
    return len(
        {
            (_path(workload.journal[number - 1].inode, names), ends[number].place or number)
            for number, names in along
        }
    )


def done_in(
    changed: RecordedWorkload, numbers: Sequence[int], original: RecordedWorkload, failure: Failure
) -> int:
    """Return the number of operations in ``changed`` before the crash of a failure of ``original``.

    ``numbers`` has the number in ``changed`` of each operation of ``original``. A barrier that was
    inserted behind the last operation precedes the crash only if it precedes its last entry.
    """
    number, last = done_at(failure.crashes[0]), failure.entries - 1
    if failure.entries and original.history.entries[last].after == number:
        return changed.history.entries[last].after
    return numbers[number]


def without_inserted(
    failure: Failure, found: Exploration, original: RecordedWorkload, model: PersistenceModel
) -> Failure | None:
    """Return a failure of ``found``, which has further barriers, as one of the original workload.

    It loses the same pieces there, and the whole of a rename that only a barrier has cut in parts.
    None if the original cannot lose exactly these pieces, and for a failure that is no single power
    cut.
    """
    point, *others = failure.crashes
    if others or point.kind is not CrashKind.POWER_CUT:
        return None
    journal = found.workload.journal
    numbers = [0, *accumulate(not is_inserted(operation) for operation in journal)]
    done = numbers[done_at(point)]
    ((_, changed),) = unsynced_along(journal, found.model, {done_at(point)})
    ((_, micros),) = unsynced_along(original.journal, model, {done})
    places = {comparable(micro): place for place, micro in enumerate(micros)}
    renames = {each.operation: at for at, each in enumerate(micros) if isinstance(each, MoveName)}
    same = [comparable(piece, numbers) for piece in changed]
    moved = [places.get(piece, renames.get(piece.operation, -1)) for piece in same]
    lost, torn, stale = point.survivors
    survivors = SurvivorSet(
        tuple(sorted({moved[index] for index in lost})),
        tuple((moved[index], kept) for index, kept in torn),
        tuple(moved[index] for index in stale),
    )
    phase = Phase.AFTER if done else Phase.BEFORE
    crash = CrashPoint(max(done, 1), phase, CrashKind.POWER_CUT, survivors)
    # A piece that is not found has the index -1, which is not possible either.
    if not is_possible(original.journal, model, crash):
        return None
    return replace(failure, crashes=(crash,))


def gap_of(
    workload: RecordedWorkload, barrier: MissingBarrier, model: PersistenceModel, failure: Failure
) -> Gap:
    """Return the gap of the barrier that belongs to the losses of ``failure``.

    That is the first gap that begins with a lost operation. If there is none, a barrier at the end
    of a gap may still cover a lost operation within it, on the same inode. Then the gap begins with
    the latest such operation. Otherwise it is the first gap of the workload.
    """
    lost = _lost_operations(workload, model, failure)
    gaps = [
        (first, last) for last, due in _due(workload, barrier) for first in reversed([*due.items()])
    ]
    exact = (gap for gap in gaps if gap[0][1].number in lost)
    (inode, first), last = next(exact, None) or next(
        _gaps_of_others(workload, barrier, gaps, lost), gaps[0]
    )
    path = _path(inode, names_at(workload.journal, _position(workload, last)))
    paths = Counter(_due_paths(workload, barrier))
    more = paths.pop(path, 1) - 1
    return Gap(path, first, last, tuple(paths), more, barrier)


def _gaps_of_others(
    workload: RecordedWorkload, barrier: MissingBarrier, gaps: Iterable[_Due], lost: Container[int]
) -> Iterator[_Due]:
    """Yield the gaps from the latest lost operation whose inode a barrier covers."""
    events = [event for event in events_of(workload) if event.operation is not None]
    for (inode, first), last in gaps:
        for event in reversed(events[first.number : _position(workload, last)]):
            assert event.operation is not None, event
            if event.number in lost and barrier.synced.inode_of(event.operation) == inode:
                yield (inode, event), last
                break


def _due_paths(workload: RecordedWorkload, barrier: MissingBarrier) -> Iterator[str]:
    """Yield the path for which the barrier is due at each place, in the order of the workload."""
    inodes: dict[int, list[int]] = {}
    for last, due in _due(workload, barrier):
        inodes.setdefault(_position(workload, last), []).extend(due)
    along = zip(names_along(workload.journal, inodes), inodes.values(), strict=True)
    for names, those in along:
        yield from (_path(inode, names) for inode in those)


def _path(inode: int, names: Names) -> str:
    return names.get(inode, f"inode {inode}")


def is_due_for_loss(
    workload: RecordedWorkload, barrier: MissingBarrier, model: PersistenceModel, failure: Failure
) -> bool:
    """Return whether the barrier is due for an operation that ``failure`` loses."""
    lost = _lost_operations(workload, model, failure)
    return any(first.number in lost for _, due in _due(workload, barrier) for first in due.values())


def _lost_operations(
    workload: RecordedWorkload, model: PersistenceModel, failure: Failure
) -> set[int]:
    """Return the numbers of the operations of which the first crash loses a piece."""
    point = failure.crashes[0]
    ((_, micros),) = unsynced_along(workload.journal, model, {done_at(point)})
    return {piece.operation for piece in lost_pieces(micros, point)}


def _due(
    workload: RecordedWorkload, barrier: MissingBarrier
) -> Iterator[tuple[Event, dict[int, Event]]]:
    """Yield each event before which a barrier is due, with the inodes and their operations.

    None is due where the program has one itself.
    """
    due: dict[int, Event] = {}
    for event in events_of(workload):
        if isinstance(event.operation, Sync):
            for inode, first in [*due.items()]:
                if _is_barrier_for(event.operation, inode, first):
                    del due[inode]
        if due and event.is_at(barrier.before):
            yield event, due
            due = {}
        if event.operation is not None and event.is_at(barrier.after):
            inode = barrier.synced.inode_of(event.operation)
            if inode:
                due.pop(inode, None)
                due[inode] = event


def _is_barrier_for(sync: Sync, inode: int, first: Event) -> bool:
    """Return whether a sync of the program covers an operation for which a barrier is due."""
    covers_all = sync.inode in {0, inode} and not sync.end
    return covers_all and (not sync.data_only or isinstance(first.operation, Write))


def _position(workload: RecordedWorkload, event: Event) -> int:
    """Return the number of operations before an event."""
    if event.operation is not None:
        return event.number - 1
    return workload.history.entries[event.entries - 1].after


def _entries_before(event: Event) -> int:
    """Return the number of entries of the history before an event."""
    return event.entries - (event.operation is None)


def _with(workload: RecordedWorkload, syncs: tuple[tuple[int, int, int], ...]) -> Insertion:
    journal = workload.journal
    at: dict[int, list[tuple[int, Operation]]] = {}
    for position, before, inode in syncs:
        sync = Sync(_INSERTED, inode, data_only=False)
        at.setdefault(position, []).append((before, sync))
    operations: list[Operation] = [sync for _, sync in at.get(0, ())]
    numbers = [0]
    for number, operation in enumerate(journal, 1):
        operations.append(operation)
        numbers.append(len(operations))
        operations += [sync for _, sync in at.get(number, ())]
    entries = []
    for place, entry in enumerate(workload.history.entries):
        preceding = sum(before <= place for before, _ in at.get(entry.after, ()))
        entries.append(entry._replace(after=numbers[entry.after] + preceding))
    changed = replace(
        workload,
        journal=Journal(journal.image, operations),
        history=History(lambda: len(operations), entries=entries),
        places={numbers[number]: place for number, place in workload.places.items()},
        mapped=tuple(numbers[number] for number in workload.mapped),
    )
    return Insertion(changed, numbers, syncs)


# -- candidates --------------------------------------------------------------------------


def candidates(
    workload: RecordedWorkload, model: PersistenceModel, failure: Failure
) -> Iterator[MissingBarrier]:
    """Yield the barriers that may prevent the first crash of a failure, the latest first.

    They are due between an operation that lost a piece and an event of the program, before the
    crash.
    """
    point = failure.crashes[0]
    done = done_at(point)
    lost = _lost_operations(workload, model, failure)
    events = [
        event
        for event in events_of(workload)
        if event.is_before(done, failure.entries)
        and not (event.operation is not None and is_inserted(event.operation))
    ]
    known: set[MissingBarrier] = set()
    for place, last in reversed(list(enumerate(events))):
        for first in reversed(events[:place]):
            if first.operation is None or first.number not in lost:
                continue
            for barrier in _between(first, first.operation, last):
                if barrier not in known:
                    known.add(barrier)
                    yield barrier


def _between(first: Event, operation: Operation, last: Event) -> Iterator[MissingBarrier]:
    """Yield the barriers between two events: for a name on its directory, then on its file.

    They are due on the paths of the events, then on any path at their lines. The events of
    one line may be those of a library in C, of which only one is meant.
    """
    named = isinstance(operation, Create | Link | Rename | Unlink)
    for synced in reversed(Synced) if named else Synced:
        if synced.inode_of(operation):
            yield MissingBarrier(synced, first.site, last.site)
            if first.place != last.place:
                yield MissingBarrier(synced, first.wide_site, last.wide_site)
