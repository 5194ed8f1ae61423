"""Changes in place: several calls that change one file, between which a crash leaves a mixture."""

from __future__ import annotations

from collections.abc import Sequence

from faults.crash_point import CrashKind, Phase
from powercut.crash_text import names_at
from powercut.explorer.crash_state import done_at
from powercut.explorer.diagnosis import Cause, NoGap
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Failure
from sim.disk.cache.operation import Allocate, Operation, Rename, Resize, Write


def changed_in_place(workload: RecordedWorkload, causes: Sequence[Cause]) -> str:
    """Return the path of a file that a crash catches between two changes of it, or "".

    A new file that is renamed would be whole at every crash.
    """
    for cause in causes:
        failure = cause.failure
        if cause.gap is NoGap.NOT_ATOMIC and len(failure.crashes) == 1:
            inode = _inode_between(workload.journal, failure)
            if inode:
                names = names_at(workload.journal, done_at(failure.crashes[0]))
                return names.get(inode, "")
    return ""


def _inode_between(journal: Sequence[Operation], failure: Failure) -> int:
    """Return the inode whose content the calls on both sides of a crash change, or 0."""
    point = failure.crashes[0]
    done = done_at(point)
    before = journal[done - 1] if done else None
    after = journal[done] if done < len(journal) else None
    if point.kind is CrashKind.POWER_CUT:
        return before.inode if isinstance(before, Write | Resize | Allocate) else 0
    if not isinstance(after, Write | Resize | Allocate):
        return 0
    is_same = before is not None and before.inode == after.inode
    if point.phase is Phase.DURING or (is_same and not isinstance(before, Rename)):
        return after.inode
    return 0
