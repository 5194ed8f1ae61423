"""Cut runs: the steps of a failed run up to the power cut that makes it fail.

The failure may show long after the moment from which on the power cut does harm. The run is
therefore repeated with the power cut after each earlier operation, and after each return of an
action or recovery, that follows a piece that it lost. The first of these moments at which it
fails is the one before which a barrier is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from faults.crash_point import CrashKind, Phase
from powercut.explorer.crash_state import lost_pieces
from powercut.fuzz.action import CRASH_AND_RECOVER, Action, Json
from powercut.fuzz.crash_runner import PlannedCrash
from powercut.fuzz.lifetime_recorder import Call, LifetimeRecorder
from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target_run import TargetRun
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.survivor_set import SurvivorSet, closed
from sim.disk.disk import Disk


@dataclass(frozen=True, slots=True)
class CutRun:
    """The steps of a run, the last of which ends in power cut number ``power_cut``, from 1.

    ``failed`` is the failed run, and ``recorder`` has recorded this one. It fails with the disk
    ``image`` behind the power cut, and passes if the power cut loses nothing.
    """

    failed: TargetRun
    steps: Sequence[RecordedStep]
    power_cut: int
    recorder: LifetimeRecorder
    image: Image

    def failure(self, image: Image) -> Exception | None:
        """Repeat it with this disk behind the power cut, and return its failure, or None."""
        run = self.failed.fresh()

        def replace(number: int, _disk: Disk, _chosen: SurvivorSet) -> Image | None:
            return image if number == self.power_cut else None

        run.crash_runner.replace = replace
        return run.repeat_nearest(self.steps)


def decisive(failed: TargetRun) -> CutRun | None:
    """Return a failed run with the last power cut without whose losses it passes.

    If it needs the losses of several, that is the last of them. Returns None if it fails as
    well when no power cut loses anything.
    """
    recorder = failed.placed().crash_runner.recorder
    if recorder is None:
        return None
    steps = failed.log.steps
    losing = [
        CutRun(failed, steps, number, recorder, _disk(recorder, last).power_cut(point.survivors))
        for number, (last, point) in enumerate(recorder.power_cuts, 1)
        if point.survivors.lost or point.survivors.torn
    ]
    if not losing or fails_without_losses(failed):
        return None
    for cut in reversed(losing):
        last, _ = recorder.power_cuts[cut.power_cut - 1]
        if cut.failure(_disk(recorder, last).unmounted()) is None:
            return cut
    return losing[-1]


def earliest(cut: CutRun, is_over: Callable[[], bool]) -> CutRun:
    """Return the run with its power cut at the first moment at which it does harm."""
    lost = _lost(cut)
    for call, operation in _moments(cut, min(number for number, _ in lost)):
        if is_over():
            break
        steps = _cut_at(cut, call, operation)
        if steps is None:
            continue
        moved = _moved(cut, steps, lost)
        if moved is not None:
            return moved
    return cut


def _disk(recorder: LifetimeRecorder, lifetime: int) -> Disk:
    return recorder.boots[lifetime].disk


def fails_without_losses(failed: TargetRun) -> bool:
    """Return whether a run fails as well when no power cut loses anything."""
    run = failed.fresh()
    run.crash_runner.replace = lambda _number, disk, _chosen: disk.unmounted()
    return run.repeat_nearest(failed.log.steps) is not None


def _lost(cut: CutRun) -> set[tuple[int, MicroOperation]]:
    """Return the lost pieces, each with the number of its operation since the power cut before."""
    last, point = cut.recorder.power_cuts[cut.power_cut - 1]
    micros = _disk(cut.recorder, last).unsynced().micros
    return {_numbered(each, cut.recorder.before(last)) for each in lost_pieces(micros, point)}


def _numbered(piece: MicroOperation, before: int) -> tuple[int, MicroOperation]:
    return piece.operation + before, piece._replace(operation=0)


def _moments(cut: CutRun, first: int) -> Iterator[tuple[Call, int]]:
    """Yield each moment from operation ``first`` on, as a call and its number of operations.

    0 is the moment after its return.
    """
    recorder = cut.recorder
    last, point = recorder.power_cuts[cut.power_cut - 1]
    boots = recorder.since_power_cut(last)
    for call in recorder.calls:
        if call.lifetime not in boots:
            continue
        before = recorder.before(call.lifetime)
        end = len(_disk(recorder, call.lifetime).journal) if call.end is None else call.end
        for number in range(call.start + 1, end + 1):
            if before + number >= first and (call.lifetime, number) != (last, point.operation):
                yield call, number - call.start
        if call.end is not None and before + call.end >= first:
            yield call, 0


def _cut_at(cut: CutRun, call: Call, operation: int) -> Sequence[RecordedStep] | None:
    """Return the steps with a power cut after an operation of a call, None if that is impossible.

    The first recovery of a run cannot be crashed, nor a step that injects a fault.
    """
    if call.step < 0 or call.step >= len(cut.steps):
        return None
    step = cut.steps[call.step]
    action, crashes = step.action, list[Json]()
    if action.name == CRASH_AND_RECOVER:
        assert step.action.wrapped is not None
        action = step.action.wrapped
        planned = step.action.arguments["crashes"]
        assert isinstance(planned, list)
        crashes += planned[: call.after]
    elif call.after or call.text != str(action):
        return None
    crashes.append(PlannedCrash(operation, Phase.AFTER, CrashKind.POWER_CUT).plain())
    crashed = Action(CRASH_AND_RECOVER, {"action": action.plain(), "crashes": crashes})
    return (*cut.steps[: call.step], RecordedStep(crashed, (), list(step.chosen)))


def _moved(
    cut: CutRun, steps: Sequence[RecordedStep], lost: set[tuple[int, MicroOperation]]
) -> CutRun | None:
    """Return these steps as a cut run if they fail with the ``lost`` pieces lost, and only then."""
    run = TargetRun(cut.failed.make_target, cut.failed.model, with_places=True)
    recorder = run.crash_runner.recorder
    assert recorder is not None
    images: list[Image] = []

    def replace(number: int, disk: Disk, _chosen: SurvivorSet) -> Image | None:
        if number < cut.power_cut:
            return None
        before = recorder.before(len(recorder.boots) - 1)
        images.append(disk.power_cut(_survivors(disk, before, lost)))
        return images[-1]

    run.crash_runner.replace = replace
    if run.repeat_nearest(steps) is None or not images:
        return None
    moved = CutRun(cut.failed, steps, cut.power_cut, recorder, images[0])
    last, _ = recorder.power_cuts[cut.power_cut - 1]
    everything = _disk(recorder, last).unmounted()
    return moved if moved.failure(everything) is None else None


def _survivors(disk: Disk, before: int, lost: set[tuple[int, MicroOperation]]) -> SurvivorSet:
    """Return the survivors of a power cut that loses these pieces and those that need them."""
    ordering = disk.unsynced().ordering
    count = len(ordering.micros)
    survived = sum(
        1 << index
        for index, piece in enumerate(ordering.micros)
        if _numbered(piece, before) not in lost
    )
    return SurvivorSet.of_mask(closed(ordering, survived), count)
