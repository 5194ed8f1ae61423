"""Changes in place: calls that change one file, and between which a crash leaves a mixture."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from stat import S_ISDIR
from typing import Final

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.old_or_new import MIXED
from powercut.crash_text import names_at
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.crash_state import done_at, killed_along, lost_pieces, unsynced_along
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Failure
from powercut.report.order import remedy_of_order
from sim.disk.cache.operation import (
    Allocate,
    Create,
    Operation,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)
from sim.disk.crash.micro_operation import UnlinkName
from sim.disk.crash.persistence import PersistenceModel

_REMEDY_OF_SEVERAL: Final = (
    "the files do not change together: write them to a new directory, fsync them and it, and "
    "rename a symbolic link to it over the one through which they are read"
)

_REMEDY_OF_A_LOG: Final = (
    "give each record a checksum, and cut a torn record off the end before the next append"
)


def remedies_in_place(diagnosis: Diagnosis) -> list[str]:
    """Return the remedies for the files that a crash catches between two changes of them.

    A new file that is renamed is whole at every crash, unless it is written after that. A log, to
    which records are only appended, must be read in such a way that a torn record at its end does
    no harm. One that is removed, and then made again, is missing in between. One that is moved to
    another directory may keep its old name.
    """
    remedies: dict[str, None] = {}
    for cause in diagnosis.causes:
        if cause.gap is NoGap.NOT_ATOMIC and len(cause.failure.crashes) == 1:
            found = diagnosis.explorations[cause.model]
            workload = found.workload
            if cause.failure.violation.statement == MIXED:
                remedies.setdefault(_REMEDY_OF_SEVERAL)
            elif not _remedy_of(workload, cause, cause.failure):
                remedies.setdefault(remedy_of_order(found, cause.failure))
            remedies.setdefault(_remedy_of_two_names(workload, found.model, cause.failure))
            for failure in _first_of_each_file(diagnosis, cause):
                remedies.setdefault(_remedy_of(workload, cause, failure))
    return [each for each in remedies if each]


def _first_of_each_file(diagnosis: Diagnosis, cause: Cause) -> Iterator[Failure]:
    """Yield the failure that is shown, then those that no earlier change explains.

    Where a kill does harm, it goes on until a later change, whichever file the program changes in
    between. A sample may lack the kill that shows this, so of it only the first failure is taken.
    """
    yield cause.failure
    for name, failures in cause.failures.items():
        found = diagnosis.explorations[name]
        if not found.exhaustive or found.is_lazy:
            continue
        killed = {each.state for each in found.failures if not each.needs_power_cut}
        by_crash: dict[tuple[CrashKind, int], tuple[int, Failure]] = {}
        for each in failures:
            point = each.crashes[0]
            is_kill = point.kind is CrashKind.KILL
            before = point.operation - 1 if is_kill else done_at(point)
            if len(each.crashes) == 1:
                by_crash.setdefault((point.kind, before), (before, each))
        numbers = {before for before, _ in by_crash.values()}
        keys = killed_along(found.workload.journal, found.model, numbers)
        for before, each in by_crash.values():
            if (each.entries, keys[before]) not in killed:
                yield each


def _remedy_of_two_names(
    workload: RecordedWorkload, model: PersistenceModel, failure: Failure
) -> str:
    """Return the remedy for a rename of which a power cut loses only the end of the old name."""
    point = failure.crashes[0]
    done = done_at(point)
    before = workload.journal[done - 1] if done else None
    if point.kind is CrashKind.KILL or not isinstance(before, Rename):
        return ""
    ((_, micros),) = unsynced_along(workload.journal, model, {done})
    lost = lost_pieces(micros, point)
    if not lost or any(not isinstance(each, UnlinkName) or each.operation != done for each in lost):
        return ""
    path = names_at(workload.journal, done)[lost[0].number]
    return f"the rename to {path} may leave the old name as well: remove it at the next start"


def _remedy_of(workload: RecordedWorkload, cause: Cause, failure: Failure) -> str:
    """Return the remedy for the file that one crash catches between two changes of it, or ""."""
    if removed := _path_removed_early(workload.journal, failure):
        return (
            f"{removed} is removed before the new one is there: make that under another "
            f"name, and rename it to {removed}"
        )
    early = _inode_renamed_early(workload.journal, failure)
    inode = early or _inode_between(workload.journal, failure)
    names = names_at(workload.journal, done_at(failure.crashes[0])) if inode else {}
    if inode not in names:
        return ""
    if early:
        return (
            f"{names[inode]} is renamed before it is written: write it and fsync it, and "
            "then rename it"
        )
    return _remedy_of_content(workload, inode, cause, names[inode])


def _remedy_of_content(workload: RecordedWorkload, inode: int, cause: Cause, path: str) -> str:
    """Return the remedy for a file that is changed in place: another one for a log.

    A log is appended to after its data were acknowledged. If they were only synced, the file may
    be one of whose records none was acknowledged yet, or one that is written in parts.
    """
    journal, entries = workload.journal, workload.history.entries
    changes = [
        (number, operation)
        for number, operation in enumerate(journal, 1)
        if isinstance(operation, Write | Resize | Allocate) and operation.inode == inode
    ]
    is_appended = _is_only_appended(journal, changes, cause)
    acknowledged = [each.after for each in entries if each.acknowledged]
    if is_appended and _goes_on_after(changes, acknowledged):
        return f"an append to {path} is not atomic: {_REMEDY_OF_A_LOG}"
    remedy = (
        f"the changes of {path} are not atomic: write a new file, fsync it, and rename it to {path}"
    )
    synced = [
        number
        for number, operation in enumerate(journal, 1)
        if isinstance(operation, Sync) and operation.inode in {0, inode}
    ]
    if is_appended and _goes_on_after(changes, synced):
        return f"{remedy}; if it is a log, {_REMEDY_OF_A_LOG}"
    return remedy


def _is_only_appended(
    journal: Sequence[Operation], changes: Sequence[tuple[int, Operation]], cause: Cause
) -> bool:
    """Return whether these changes of a file are those of a log.

    It may be cut shorter too, as a recovery does with a torn end, or with a log that it has read.
    If the cut itself is a failure, the old content was needed.
    """
    if not all(_is_append(each) or _is_cut(each) for _, each in changes):
        return False
    points = [each.crashes[0] for failures in cause.failures.values() for each in failures]
    return not any(_follows_cut(journal, point, changes) for point in points)


def _goes_on_after(changes: Sequence[tuple[int, Operation]], moments: Collection[int]) -> bool:
    """Return whether data is appended to data that was written before one of these moments.

    They are numbers of operations. Data that was there at the start was written before them.
    """
    before: tuple[int, Operation] | None = None
    for number, operation in changes:
        if isinstance(operation, Write) and operation.size_before:
            if before is None or not isinstance(before[1], Write):
                return True
            if any(before[0] <= after < number for after in moments):
                return True
        before = number, operation
    return False


def _is_append(operation: Operation) -> bool:
    return isinstance(operation, Write) and operation.offset == operation.size_before


def _is_cut(operation: Operation) -> bool:
    return isinstance(operation, Resize) and operation.size <= operation.size_before


def _follows_cut(
    journal: Sequence[Operation], point: CrashPoint, changes: Sequence[tuple[int, Operation]]
) -> bool:
    """Return whether the last change before a crash, or during it, makes the file shorter.

    A crash right behind a change of another file, or during it, concerns that file.
    """
    end = point.operation - (point.phase is Phase.BEFORE)
    cut = next((each for number, each in reversed(changes) if number <= end), None)
    last = next((each for each in reversed(journal[:end]) if not isinstance(each, Sync)), None)
    is_own = last is not None and cut is not None and last.inode == cut.inode
    return is_own and isinstance(cut, Resize) and cut.size < cut.size_before


def _path_removed_early(journal: Sequence[Operation], failure: Failure) -> str:
    """Return the path that is removed right before a kill, and is made again next, or ""."""
    point = failure.crashes[0]
    done = done_at(point)
    if point.kind is not CrashKind.KILL or not done:
        return ""
    after = next((each for each in journal[done:] if not isinstance(each, Sync)), None)
    match journal[done - 1], after:
        case Unlink(path=path), Rename(to_path=made) if path == made:
            return path
        case Unlink(path=path), Create(path=made, mode=mode) if path == made and not S_ISDIR(mode):
            return path
    return ""


def _inode_renamed_early(journal: Sequence[Operation], failure: Failure) -> int:
    """Return the inode of a rename right before a kill, if its content is written next, or 0."""
    point = failure.crashes[0]
    done = done_at(point)
    before = journal[done - 1] if done else None
    if point.kind is not CrashKind.KILL or not isinstance(before, Rename):
        return 0
    following = (each for each in journal[done:] if each.inode == before.inode)
    is_written = isinstance(next(following, None), Write | Resize | Allocate)
    return before.inode if is_written else 0


def _inode_between(journal: Sequence[Operation], failure: Failure) -> int:
    """Return the inode whose content the calls on both sides of a crash change, or 0.

    A barrier after the crash changes no content, so the call after it counts. If the call before it
    has emptied the file, the next call on this file counts.
    """
    point = failure.crashes[0]
    done = done_at(point)
    before = journal[done - 1] if done else None
    if point.kind is CrashKind.POWER_CUT:
        return before.inode if isinstance(before, Write | Resize | Allocate) else 0
    following = (each for each in journal[done:] if not isinstance(each, Sync))
    if isinstance(before, Resize) and not before.size and point.phase is Phase.AFTER:
        following = (each for each in following if each.inode == before.inode)
    after = next(following, None)
    if not isinstance(after, Write | Resize | Allocate):
        return 0
    is_same = before is not None and before.inode == after.inode
    if point.phase is Phase.DURING or (is_same and not isinstance(before, Rename)):
        return after.inode
    return 0
