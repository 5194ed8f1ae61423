"""The effect of all missing barriers together on the failures, and the remedy if none helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from powercut.counted import counted
from powercut.explorer.cause import Diagnosis
from powercut.explorer.missing_barrier import Gap, inserted_calls
from powercut.explorer.repair import moment_of, preventable, with_barriers
from powercut.explorer.unwritten_stores import UnsyncedStores
from powercut.explorer.verdicts import Exploration
from powercut.report.in_place import remedies_in_place

_MOST_REMEDIES: Final = 3
_UNSEEN: Final = "is not seen before the kernel writes its page"


def repair_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the states that still fail when the missing barriers of all findings are inserted.

    If no barrier suffices because a file is changed in place, a line has the remedy.
    """
    title = "repair"
    for text in _repair(diagnosis):
        yield f"{title:8}  {text}"
        title = ""


def _repair(diagnosis: Diagnosis) -> Iterator[str]:
    remedies = remedies_in_place(diagnosis)
    missing = _missing_calls(diagnosis)
    stored = {
        name: {each.state for each in failures}
        for cause in diagnosis.causes
        for name, failures in cause.failures.items()
        if isinstance(cause.gap, UnsyncedStores)
    }
    repaired = diagnosis.repaired
    unseen = sum(
        each.state in stored.get(name, ())
        for name, found in repaired.items()
        for each in found.failures
    )
    failed = sum(found.failed for found in repaired.values()) - unseen
    if missing:
        yield _effect(diagnosis, missing, failed, unseen)
    if stored and missing:
        are = "is" if unseen == 1 else "are"
        yield (
            f"{counted(unseen, 'state')} of stores to mapped memory {are} not counted, because "
            f"such a store {_UNSEEN}"
        )
    elif stored:
        yield f"cannot be checked, because a store to mapped memory {_UNSEEN}"
    if failed or stored or not missing:
        yield from remedies[:_MOST_REMEDIES]
        more = len(remedies) - _MOST_REMEDIES
        if more > 0:
            yield f"and likewise for {counted(more, 'more file')}"


def _missing_calls(diagnosis: Diagnosis) -> int:
    """Return the number of calls of fsync that the findings name, those of several once."""
    gaps = [cause.gap for cause in diagnosis.causes if isinstance(cause.gap, Gap)]
    barriers = [gap.barrier for gap in gaps if gap.barrier is not None]
    workload = next(iter(diagnosis.explorations.values())).workload
    return inserted_calls(with_barriers(workload, barriers))


def _effect(diagnosis: Diagnosis, missing: int, failed: int, unseen: int) -> str:
    """Return the effect of the missing barriers on all states, but for ``unseen`` failing ones."""
    repaired = diagnosis.repaired.values()
    states = counted(sum(found.states for found in repaired) - unseen, "state")
    barriers = "that fsync" if missing == 1 else f"these {missing} fsyncs"
    how = "" if all(found.exhaustive for found in repaired) else " (sampled)"
    does, them = ("does", "it") if missing == 1 else ("do", "them")
    if not failed and how and any(found.deduced for found in repaired):
        before = sum(diagnosis.explorations[name].failed for name in diagnosis.repaired) - unseen
        failing = counted(before, "failing state")
        return (
            f"with {barriers}, {failing} {'is' if before == 1 else 'are'} impossible; others were "
            f"not checked with {them}{how}"
        )
    if not failed:
        return f"with {barriers}, none of {states} fails{how}"
    fail = "fails" if failed == 1 else "fail"
    if any(cause.recovery for cause in diagnosis.causes):
        reason = ", and the recovery must be repaired too"
    elif any(preventable(found) for found in repaired):
        reason = "; further ones may be missing: add these, and explore again"
    elif any(map(_fails_in_recovery, repaired)):
        reason = ", and the recovery may miss an fsync"
    else:
        reason = ", and no fsync prevents that"
    return (
        f"{barriers} {does} not suffice: {failed:,} of {states} still {fail} with {them}"
        f"{how}{reason}"
    )


def _fails_in_recovery(found: Exploration) -> bool:
    """Return whether a crash does harm only because the recovery after it is crashed as well."""
    alone = {moment_of(each) for each in found.failures if len(each.crashes) == 1}
    return any(moment_of(each) not in alone for each in found.failures if each.needs_power_cut)
