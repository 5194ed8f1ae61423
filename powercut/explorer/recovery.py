"""Recoveries that a later crash interrupts: each is recorded as a workload of its own.

A kill leaves everything unsynced, so the journal of a recovery after a kill continues that of the
program. After a power cut it begins on the disk that was left. What was acknowledged before is
acknowledged in the recovery, so its missing barriers are found as those of a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TypeAlias

from faults.crash_point import CrashKind, Phase
from oracles.history import History, Known
from powercut.explorer.crash_state import image_at, is_possible, until_kill
from powercut.explorer.missing_barrier import is_inserted
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Checker, Exploration, Failure, InterruptedRecovery
from powercut.place import Place
from sim.disk.crash.journal import Journal
from sim.disk.disk import Disk

Recover: TypeAlias = Callable[[Disk, Known], Mapping[int, Place]]
"""Runs a check on a disk; returns the lines of its operations, as far as they are known."""


def recoveries_of(
    found: Exploration, failure: Failure, recover: Recover, checker: Checker
) -> Iterator[InterruptedRecovery]:
    """Yield the recovery that each crash of a failure but the first interrupts.

    Each runs to its end. They end early if a check that is not deterministic, or has changed since,
    does not repeat the operation of a crash.
    """
    workload, model, entries = found.workload, found.model, failure.entries
    known, before = workload.history.known(entries), 0
    for crash in failure.crashes[:-1]:
        point = replace(crash, operation=before + crash.operation)
        if not is_possible(workload.journal, model, point):
            return
        image = image_at(workload.journal, model, point)
        disk = Disk(image, model)
        places = recover(disk, known)
        if point.kind is CrashKind.KILL:
            begun = until_kill(workload.journal, point)
            history = _cut(workload.history, entries, len(begun))
            places_before = workload.places
        else:
            begun, history = Journal(image), at_its_start(workload.history, entries)
            places_before = {}
        before = len(begun)
        workload = RecordedWorkload(
            Journal(begun.image, [*begun, *disk.journal]),
            history,
            {number: place for number, place in places_before.items() if number <= before}
            | {before + number: place for number, place in places.items()},
            workload.root,
        )
        yield InterruptedRecovery(workload, before, checker, model)


def interrupting(recovery: InterruptedRecovery, found: Exploration) -> Exploration:
    """Return an exploration of a recovery without the crashes that precede it in its journal.

    These are crashes of the program. The journal may have further barriers.
    """
    recorded = [0, *accumulate(not is_inserted(each) for each in found.workload.journal)]
    failures = [
        each
        for each in found.failures
        if each.crashes[0].phase is not Phase.BEFORE
        and recorded[each.crashes[0].operation] > recovery.before
    ]
    failed = found.failed - len(found.failures) + len(failures)
    return replace(found, failures=failures, failed=failed)


def at_its_start(history: History, entries: int) -> History:
    """Return the history of a recovery that begins a journal, after ``entries`` entries."""
    cut = _cut(history, entries, 0).entries
    return History(lambda: 0, entries=[entry._replace(after=0) for entry in cut])


def _cut(history: History, entries: int, operations: int) -> History:
    """Return the history until a crash after some entries and operations.

    The value of the next entry is in flight then.
    """
    following = [
        entry._replace(after=operations, acknowledged=False)
        for entry in history.entries[entries : entries + 1]
    ]
    return History(lambda: operations, entries=[*history.entries[:entries], *following])
