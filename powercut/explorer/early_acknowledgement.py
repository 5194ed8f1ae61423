"""Early acknowledgements: a value that is acknowledged before the program has written it.

Most often it is in the buffer of a file: ``os.fsync`` does not write that. A kill then leaves the
disk as it was before the acknowledgement, until the program writes.
"""

from __future__ import annotations

from typing import Final

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.violation import Violation
from powercut.explorer.crash_state import image_at, killed_along
from powercut.explorer.repair import Moment, moment_of
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.disk import Disk

_MOST_TRIED: Final = 16
"""Acknowledgements that a kill loses and that are tried; those of a loop are one."""


def early_moments(found: Exploration) -> set[Moment]:
    """Return the moments from an early acknowledgement on, until a kill does no more harm.

    The last one is behind the write of the value, which a power cut may lose there. An
    acknowledgement is early if a kill right behind it leaves a disk that the check refuses, but
    with what was acknowledged before it accepts the same disk, or expects another value. Kills
    that a sample has left out are checked, as far as others fail behind them.
    """
    workload = found.workload
    journal, history = workload.journal, workload.history
    killed = {
        each.state: each
        for each in found.failures
        if not each.needs_power_cut and len(each.crashes) == 1
    }
    if not killed:
        return set()
    keys = killed_along(journal, found.model, range(len(journal) + 1))
    # The last kill that fails, for each number of entries.
    ends = {entries: number for number, entries in sorted(map(moment_of, killed.values()))}
    moments: set[Moment] = set()
    tried, is_early = 0, False
    for number in range(len(journal) + 1):
        before = history.entries_by(number, returned=False)
        entries = history.entries_by(number, returned=True)
        if is_early:
            moments.add((number, before))
            is_early = (before, keys[number]) in killed or (
                number < ends.get(before, 0) and _is_refused(found, number, before)
            )
        if entries == before:
            continue
        failure = killed.get((entries, keys[number]))
        if failure is None:
            is_early = False
            continue
        if not is_early and any(entry.acknowledged for entry in history.entries[before:entries]):
            if tried == _MOST_TRIED or found.checker.is_over(found):
                break
            tried += 1
            is_early = _is_early(found, failure, number, before)
        if is_early:
            moments.add((number, entries))
    return moments


def _is_early(found: Exploration, failure: Failure, number: int, entries: int) -> bool:
    """Return whether a kill after operation ``number`` fails, but not so after fewer entries."""
    violation = _violation(found, number, entries)
    expected = failure.violation.evidence.get("expected")
    return violation is None or violation.evidence.get("expected") != expected


def _is_refused(found: Exploration, number: int, entries: int) -> bool:
    """Return whether a kill fails that is not among the failures: a sample has left it out."""
    return not found.checker.is_over(found) and _violation(found, number, entries) is not None


def _violation(found: Exploration, number: int, entries: int) -> Violation | None:
    """Check the disk that a kill after operation ``number`` leaves."""
    workload, phase = found.workload, Phase.AFTER if number else Phase.BEFORE
    point = CrashPoint(max(number, 1), phase, CrashKind.KILL)
    image = image_at(workload.journal, found.model, point)
    return found.checker.violation(Disk(image, found.model), workload.history.known(entries))
