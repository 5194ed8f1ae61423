"""The findings of an exploration as text: one for each cause, with the barrier that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final, assert_never

from faults.crash_point import NOTHING_LOST, CrashKind, CrashPoint, Phase
from oracles.history import History, Known
from oracles.violation import Violation, shown
from powercut.counted import counted
from powercut.crash_text import lost_lines, names_at
from powercut.explorer.built_explorer import MOST_ENDLESS
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.crash_state import done_at, unsynced_along
from powercut.explorer.event import Event, between, events_of
from powercut.explorer.harm import Harm
from powercut.explorer.judge import MOST_ENDLESS_IN_ALL
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.unwritten_stores import UnsyncedStores
from powercut.explorer.verdicts import Exploration, Failure
from powercut.fuzz.action import Json
from powercut.report.repair import repair_lines
from sim.disk.cache.operation import Write
from sim.disk.crash.persistence import POSIX, SCC, PersistenceModel
from sim.disk.disk import Disk

_KINDS: Final = {CrashKind.KILL: "kill", CrashKind.POWER_CUT: "power cut"}


NOT_SEARCHED: Final = "the search for a missing fsync was interrupted, or its time was over"

_REASONS: Final = {
    NoGap.NOT_ATOMIC: "no fsync helps: none fits between the lost call and the crash; the change "
    "is not atomic",
    NoGap.ACKNOWLEDGED_EARLY: "acknowledged before it was written, for example because a buffer "
    "still holds it: flush the file (in Python, file.flush()) before the fsync and the "
    "acknowledgement",
    NoGap.NOT_FOUND: "none found: neither one fsync nor two, of those tried, leave fewer failing "
    "states",
    NoGap.CUT_OFF: "not searched for, because too many fsyncs are missing: add those that are "
    "named, and explore again",
    NoGap.NOT_SEARCHED: NOT_SEARCHED,
    NoGap.SEARCH_FAILED: "not known, because the search for a missing fsync failed",
}

MOST_MOMENTS: Final = 32
"""Moments of a workload at which a check that has never failed is tried on an empty disk."""

MOST_PATHS: Final = 3
"""Further files of a missing barrier that are named; the others are counted."""

MOST_FINDINGS: Final = 5
"""Findings that are printed in full; of the others a line is enough."""


def report_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield all findings, an empty line after each, and the effect of the missing barriers."""
    for cause in diagnosis.causes:
        yield from finding_lines(diagnosis, cause)
        yield ""
    yield from repair_lines(diagnosis)
    yield from endless_lines(diagnosis)


def check_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a note if the check passes whatever is lost.

    If it has never failed, it runs on the disk on which the workload began, with what was
    acknowledged at the end, and at earlier moments: the last acknowledgement may be of a removal.
    """
    found = next(iter(diagnosis.explorations.values()))
    if diagnosis.causes or found.checker.is_over(found):
        return
    history, disk = found.workload.history, found.workload.journal.image
    moments = [
        Known(history.known(count).acknowledged, ())
        for count in range(len(history.entries), 0, -1)[:MOST_MOMENTS]
    ]
    if not any(found.checker.violation(Disk(disk, found.model), known) for known in moments):
        yield (
            "note      the check passes also if everything is lost that was acknowledged; it must "
            "compare the disk with known.acknowledged"
        )


def finding_lines(diagnosis: Diagnosis, cause: Cause) -> Iterator[str]:
    """Yield one finding: its simplest failure, and its cause."""
    exploration = diagnosis.explorations[cause.model]
    failure = cause.failure
    violation = failure.violation
    yield f"FAILED  {violation.property_name}  {harms_text(cause)}{weakest(diagnosis, cause)}"
    yield from (f"  {line}" for line in violation.statement.splitlines())
    yield from crash_lines(exploration, failure, _stores_lost(cause))
    yield f"  cause     {cause_text(cause)}"
    for line in repair_lines(cause.recovery) if cause.recovery is not None else ():
        yield f"  {line}"
    if len(cause.failures) < len(diagnosis.explorations):
        yield f"  unsafe    on {listed(tuple(cause.failures))}{_elsewhere(diagnosis, cause)}"
    yield from _evidence(violation)


def _elsewhere(diagnosis: Diagnosis, cause: Cause) -> str:
    """Return the end of the list of models, if the crash occurs on every file system.

    Where it is not listed, the barriers of the other findings have prevented it in every state
    that was checked; there may be others if it was a sample.
    """
    others = tuple(name for name in diagnosis.unsafe_models if name not in cause.failures)
    if cause.model != SCC.name or not isinstance(cause.gap, Gap) or not others:
        return ""
    return f"; on {listed(others)}, the other fsyncs named here prevent it in all states checked"


def short_line(cause: Cause) -> str:
    """Return a finding in one line."""
    violation = cause.failure.violation
    return f"FAILED  {violation.property_name}  on {cause.model}: {cause_text(cause)}"


def failure_lines(cause: Cause) -> Iterator[str]:
    """Yield every failure of a finding in one line each, the simplest of each model first."""
    for model, failures in cause.failures.items():
        for failure in failures:
            crashes = ", then ".join(map(str, failure.crashes))
            yield f"  {model:14}  {crashes}: {failure.violation.statement}"


def harms_text(cause: Cause) -> str:
    """Return the worst harm under the model that is shown, and a worse one under others.

    At a kill it is the worst one of kills, and a worse one is that of power cuts. It ends with a
    comma, and is empty if the harm is not known.
    """
    corrupt = cause.harms.get(Harm.CORRUPTION, ())
    of_shown: set[Harm | None]
    if cause.failure.needs_power_cut:
        of_shown = {harm for harm, models in cause.harms.items() if cause.model in models}
        where = f"{Harm.CORRUPTION} on {listed(corrupt)}" if corrupt else ""
    else:
        of_shown = {cause.harm_of_kills}
        where = f"{Harm.CORRUPTION} at a power cut on {listed(corrupt)}" if corrupt else ""
    if Harm.CORRUPTION in of_shown:
        return f"{Harm.CORRUPTION}, "
    if Harm.LOST_ACKNOWLEDGEMENT not in of_shown:
        return f"{where}, " if where else ""
    worse = f" ({where})" if where else ""
    return f"{Harm.LOST_ACKNOWLEDGEMENT}{worse}, "


def weakest(diagnosis: Diagnosis, cause: Cause) -> str:
    """Return the weakest cause of the crash: a kill, a real file system, or posix only.

    A kill during a direct write does harm under some models only, which are named.
    """
    if not cause.failure.needs_power_cut:
        workload = diagnosis.explorations[cause.model].workload
        if not _is_during_direct_write(workload, cause.failure.crashes[0]):
            return "at a kill"
        models = tuple(
            name
            for name, failures in cause.failures.items()
            if not all(each.needs_power_cut for each in failures)
        )
        return f"at a kill on {listed(models)}"
    if len(diagnosis.explorations) == 1:
        return f"on {cause.model}"
    if cause.model == SCC.name:
        return "on every file system"
    if cause.model == POSIX.name:
        return "on posix only"
    return f"on a real file system ({cause.model})"


def _is_during_direct_write(workload: RecordedWorkload, point: CrashPoint) -> bool:
    if point.phase is not Phase.DURING:
        return False
    operation = workload.journal[point.operation - 1]
    return isinstance(operation, Write) and operation.direct


def cause_text(cause: Cause) -> str:
    """Return the cause in one sentence."""
    if cause.recovery is not None:
        return f"in the recovery, {', and '.join(map(cause_text, cause.recovery.causes))}"
    match cause.gap:
        case Gap(path, first, last, others, more):
            again = "" if first.place else _again(more)
            return f"no fsync of {path} {between(first, last)}{again}{_nor_of(others)}"
        case UnsyncedStores(paths, acknowledgement):
            return (
                f"no msync (of all these pages) or fsync of {_named(paths)} between its stores to "
                f"mapped memory and {acknowledgement}; if they come after it, a kill loses them too"
            )
        case NoGap.NOT_ATOMIC if not cause.failure.needs_power_cut:
            return "no fsync helps: a kill loses nothing that was written; the change is not atomic"
        case NoGap.NOT_ATOMIC | NoGap.NOT_FOUND if len(cause.failure.crashes) > 1:
            return (
                "none found in the workload; the last crash interrupts the recovery, which may "
                "miss an fsync"
            )
        case NoGap():
            return _REASONS[cause.gap]
        case _:
            assert_never(cause.gap)


def _again(places: int) -> str:
    """Return the further places that the same barrier concerns, as the end of a sentence."""
    return f", and at {counted(places, 'more place')}" if places else ""


def _nor_of(paths: Sequence[str]) -> str:
    """Return the further paths that the same barrier concerns, as the end of a sentence."""
    if not paths:
        return ""
    return f", nor of {_named(paths)}"


def _named(paths: Sequence[str]) -> str:
    """Return the first paths, and the number of the others."""
    more = len(paths) - MOST_PATHS
    return listed([*paths[:MOST_PATHS], f"{more} more"] if more > 0 else paths)


def _stores_lost(cause: Cause) -> Sequence[str]:
    """Return the files of which a failure loses nothing but stores to mapped memory."""
    is_all = cause.failure.crashes[0].survivors == NOTHING_LOST
    return cause.gap.paths if isinstance(cause.gap, UnsyncedStores) and is_all else ()


def crash_lines(
    exploration: Exploration, failure: Failure, stores: Sequence[str] = ()
) -> Iterator[str]:
    """Yield each crash of a failure, and the pieces that a power cut lost.

    If it lost only ``stores`` to mapped memory, which have no pieces yet, these are the files.
    """
    workload, (first, *others) = exploration.workload, failure.crashes
    yield f"  crash     {_where(workload, first, failure.entries)}"
    if stores:
        yield f"  lost      stores to mapped memory of {_named(stores)}, not written yet"
    else:
        yield from _lost(workload, exploration.model, first)
    recoveries = exploration.checker.recoveries(exploration, failure)
    for number, (point, recovery) in enumerate(zip_longest(others, recoveries), 1):
        if recovery is None or not recovery.allows(point):
            yield f"  crash     {_nested(point)} of recovery {number}"
            continue
        workload, moved = recovery.workload, recovery.in_journal(point)
        silent = replace(workload, history=History(lambda: 0))
        yield f"  crash     {_where(silent, moved, 0)}, in recovery {number}"
        yield from _lost(workload, recovery.model, moved)


def interrupted_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the line of a check that still ran when the time was over, and the crash before it."""
    for found in diagnosis.explorations.values():
        if found.interrupted_at is None:
            continue
        where = f"{found.interrupted_at.where} in {found.interrupted_at.function}"
        yield f"note      the check still ran when the time was over, at {where}"
        if found.interrupted is not None:
            yield from crash_lines(found, found.interrupted)


def endless_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the reasons for which states were left out after checks that did not end."""
    explorations = diagnosis.explorations.items()
    cut = [name for name, found in explorations if found.endless]
    if cut:
        yield (
            f"note      the check did not end on {MOST_ENDLESS} states, and was ended; the other "
            f"states were left out on {listed(cut)}"
        )
    if any(found.gave_up for _, found in explorations):
        yield (
            f"note      the check did not end on {MOST_ENDLESS_IN_ALL} states in all, and was "
            "ended; then nothing more was checked, also in the search for missing fsyncs"
        )


def _lost(workload: RecordedWorkload, model: PersistenceModel, point: CrashPoint) -> Iterator[str]:
    """Yield the pieces that a power cut of a workload lost."""
    if point.kind is not CrashKind.POWER_CUT:
        return
    done = done_at(point)
    ((_, micros),) = unsynced_along(workload.journal, model, {done})
    names = names_at(workload.journal, done)
    for line in lost_lines(micros, point.survivors, names, workload.places):
        verb, _, text = line.partition("   ")
        yield f"  {verb:8}  {text}"


def _where(workload: RecordedWorkload, point: CrashPoint, entries: int) -> str:
    """Return the kind of a crash, and the events around it; ``entries`` of the history precede."""
    done = done_at(point)
    before: Event | None = None
    after: Event | None = None
    acknowledged: Event | None = None
    for event in events_of(workload):
        if not event.is_before(done, entries):
            after = event
            break
        before = event
        if event.operation is None:
            acknowledged = event
    kind = _KINDS[point.kind]
    if point.phase is Phase.DURING:
        where = f"{kind} during {after}, after {counted(str(point.kept), 'byte')}"
    elif before is None:
        where = f"{kind} before the first operation"
    elif point.kind is CrashKind.KILL and after is not None:
        where = f"{kind} {between(before, after)}"
    else:
        where = f"{kind} after {before}"
    if acknowledged is not None and acknowledged != before:
        where += f"; last {acknowledged}"
    return where


def _nested(point: CrashPoint) -> str:
    return f"{_KINDS[point.kind]} {point.phase} operation {point.operation}"


def _evidence(violation: Violation) -> Iterator[str]:
    width = max((8, *map(len, violation.evidence)))
    for name, value in violation.evidence.items():
        text = value if name == "at" else shown(value)
        yield f"  {name:{width}}  {text}"


def listed(names: Sequence[str]) -> str:
    """Return the names as an enumeration in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plain_causes(
    diagnosis: Diagnosis, reproducers: Sequence[str], dumps: Sequence[str]
) -> list[Json]:
    """Return the findings as JSON data, with their files and the directories of their disks."""
    return [
        {
            "property": cause.failure.violation.property_name,
            "statement": cause.failure.violation.statement,
            "harms": {harm.value: list(models) for harm, models in cause.harms.items()},
            "weakest": weakest(diagnosis, cause),
            "models": list(cause.failures),
            "cause": cause_text(cause),
            "model": cause.model,
            "crashes": [str(point) for point in cause.failure.crashes],
            "reproducer": reproducer,
            "dump": dumped,
        }
        for cause, reproducer, dumped in zip(diagnosis.causes, reproducers, dumps, strict=True)
    ]
