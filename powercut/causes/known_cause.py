"""Known causes: whether a failed run has another cause than those that have been found.

A run has another cause if it still fails in the same way when the missing barriers of the known
ones are carried out in it: the power cuts then keep what these barriers make durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from powercut.causes.cut_run import fails_without_losses
from powercut.causes.run_diagnosis import RunDiagnosis, workload_until
from powercut.explorer.cause import Cause
from powercut.explorer.crash_state import (
    comparable,
    done_at,
    is_left,
    lost_pieces,
    unsynced_along,
)
from powercut.explorer.event import Event, Site, events_of
from powercut.explorer.missing_barrier import Gap, Synced, insert_behind, is_inserted
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuzz.lifetime_recorder import LifetimeRecorder
from powercut.fuzz.target_run import TargetRun
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet, can_be_stale, can_tear, closed
from sim.disk.disk import Disk


class KnownCause(NamedTuple):
    """The barriers that a failed run misses, each behind the events at a site.

    ``barriers`` is empty for a run that fails as well when no power cut loses anything.
    """

    barriers: tuple[tuple[Synced, Site], ...]


def known_cause(found: RunDiagnosis | None) -> KnownCause:
    """Return the cause of a diagnosed run.

    Other causes that the same power cut shows are part of it, unless they do harm under a stronger
    model: such a one deserves a run of its own. For failures that no barrier prevents, barriers
    that keep all that is lost take its place.
    """
    if found is None:
        return KnownCause(())
    models = list(found.diagnosis.explorations)
    own = models.index(found.cause.model)
    barriers: dict[tuple[Synced, Site], None] = {}
    for cause in found.diagnosis.causes:
        if cause is found.cause or models.index(cause.model) >= own:
            barriers |= dict.fromkeys(_barriers(found, cause))
    return KnownCause(tuple(barriers))


def has_another_cause(
    run: TargetRun, known: Iterable[KnownCause], *, is_alone: bool = False
) -> bool:
    """Return whether a failed run has a cause besides the ``known`` ones.

    If that ``is_alone``, the run loses nothing that their barriers would keep.
    """
    causes = tuple(known)
    if not all(cause.barriers for cause in causes) and fails_without_losses(run):
        return False
    barriers = dict.fromkeys(barrier for cause in causes for barrier in cause.barriers)
    again = TargetRun(run.make_target, run.model, with_places=True)
    recorder = again.crash_runner.recorder
    assert recorder is not None

    lost, left = list[SurvivorSet](), list[SurvivorSet]()

    def replace(_number: int, disk: Disk, survivors: SurvivorSet) -> Image:
        lost.append(survivors)
        left.append(_with_barriers(disk, recorder, survivors, barriers))
        return disk.power_cut(left[-1])

    again.crash_runner.replace = replace
    again.repeat_nearest(run.log.steps)
    return again.log.fails_like(run.log) and not (is_alone and lost != left)


def _barriers(found: RunDiagnosis, cause: Cause) -> Iterator[tuple[Synced, Site]]:
    """Yield the missing barriers of a cause; without one, those that keep all that is lost."""
    if isinstance(cause.gap, Gap) and cause.gap.barrier is not None:
        synced = cause.gap.barrier.synced
        yield synced, cause.gap.barrier.after
        yield synced, cause.gap.first.site
        return
    exploration, point = found.diagnosis.explorations[cause.model], cause.failure.crashes[0]
    workload = exploration.workload
    ((_, micros),) = unsynced_along(workload.journal, exploration.model, {done_at(point)})
    lost = {piece.operation for piece in lost_pieces(micros, point)}
    for event in events_of(workload):
        if event.operation is not None and event.number in lost:
            for synced in Synced:
                yield synced, event.site


def _with_barriers(
    disk: Disk,
    recorder: LifetimeRecorder,
    survivors: SurvivorSet,
    barriers: Iterable[tuple[Synced, Site]],
) -> SurvivorSet:
    """Return the survivors of a power cut of ``disk``, had the program these barriers as well."""

    def inodes_at(event: Event) -> Iterator[int]:
        assert event.operation is not None, event
        for synced, site in barriers:
            inode = synced.inode_of(event.operation) if event.is_at(site) else 0
            if inode:
                yield inode

    last = len(recorder.boots) - 1
    durable = _made_durable(disk, workload_until(recorder, last), inodes_at)
    ordering, before = disk.unsynced().ordering, recorder.before(last)
    kept = {
        index
        for index, piece in enumerate(ordering.micros)
        if comparable(piece._replace(operation=piece.operation + before)) in durable
    }
    lost = [index for index in survivors.lost if index not in kept]
    survived = closed(ordering, SurvivorSet(tuple(lost)).mask(len(ordering.micros)))
    torn = tuple(
        each
        for each in survivors.torn
        if each[0] not in kept and survived >> each[0] & 1 and can_tear(ordering, survived, each[0])
    )
    stale = tuple(index for index in survivors.stale if can_be_stale(ordering, survived, index))
    return SurvivorSet.of_mask(survived, len(ordering.micros), torn, stale)


def _made_durable(
    disk: Disk, workload: RecordedWorkload, inodes_at: Callable[[Event], Iterable[int]]
) -> set[MicroOperation]:
    """Return the unsynced pieces at the end of a workload that barriers make durable."""
    changed, _, syncs = insert_behind(workload, inodes_at)
    if not syncs:
        return set()
    original, repaired = (_unsynced_at_the_end(each, disk.model) for each in (workload, changed))
    numbers = [0, *accumulate(not is_inserted(operation) for operation in changed.journal)]
    left = {comparable(piece, numbers) for piece in repaired}
    return {comparable(piece) for piece in original if not is_left(piece, left)}


def _unsynced_at_the_end(
    workload: RecordedWorkload, model: PersistenceModel
) -> Sequence[MicroOperation]:
    end = len(workload.journal)
    ((_, micros),) = unsynced_along(workload.journal, model, {end})
    return micros
