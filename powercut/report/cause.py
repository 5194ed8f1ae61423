"""Causes of failures: findings that need the same disturbance belong together.

One missing barrier violates several properties, in several targets. Where it was found, it names
the cause. Otherwise the cause is the disturbance that the reduced run ends with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Final, NamedTuple

from powercut.causes.known_cause import KnownCause, known_cause
from powercut.causes.run_diagnosis import SECONDS, RunDiagnosis, diagnose_run
from powercut.crash_text import losses, names_on
from powercut.explorer.cause import Cause, Diagnosis
from powercut.explorer.harm import Harm
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.repair import OutOfTime
from powercut.fuzz.reproducer import Finding
from powercut.fuzz.run_cause import RunCause
from powercut.fuzz.run_log import Crash, RunLog, failure_of
from powercut.report.findings import NOT_SEARCHED, cause_text, harms_text, weakest
from powercut.report.repair import repair_lines
from sim.disk.cache.operation import Resize, Write
from sim.disk.crash.persistence import MODELS, POSIX

_LAST: Final = (len(MODELS), 1)
"""The rank of a cause that is not known to do harm on a working disk."""

_SEARCH_FAILED: Final = "the search for a missing fsync failed"

_PATH: Final = re.compile(r"/[^\s,:]*")
_TEMPORARY: Final = re.compile(r"\.tmp\b.*")
_VALUE: Final = re.compile(r"\b[0-9a-f]{6,}\b|\d+")


class Searched(NamedTuple):
    """A finding with its cause; ``known`` is that cause, None if the search has ended before.

    ``error`` is the error of powercut that has ended the search, None if none has.
    """

    finding: Finding
    known: KnownCause | None = None
    error: Exception | None = None


def searched(finding: Finding, seconds: float = SECONDS, wall_seconds: float = inf) -> Searched:
    """Search the cause of a finding.

    It takes at most ``seconds`` of processor time, and ``wall_seconds`` of the wall clock.
    """
    log = finding.run.log
    found: list[RunDiagnosis | None] = []
    error = failure_of(lambda: found.append(diagnose_run(finding.run, seconds, wall_seconds)))
    if isinstance(error, OutOfTime):
        reason = (
            f"the search for a missing fsync was ended after {seconds:g} s of processor time"
            if wall_seconds == inf
            else NOT_SEARCHED
        )
        return Searched(replace(finding, cause=_unsearched(log, reason)))
    if error is not None:
        return Searched(replace(finding, cause=_unsearched(log, _SEARCH_FAILED)), error=error)
    return Searched(replace(finding, cause=_cause(log, found[0])), known_cause(found[0]))


def _cause(log: RunLog, found: RunDiagnosis | None) -> RunCause:
    if found is None:
        return _disturbed(log)
    diagnosis, cause = found
    if isinstance(cause.gap, Gap):
        return _missing(diagnosis, cause, cause.gap)
    if any(step.action.fault_plan is not None for step in log.steps):
        # The reduction has left the fault in the run, so the power cut alone does no harm.
        return _disturbed(log)
    return replace(_lost(log, cause_text(cause)), rank=_rank(cause))


def _missing(diagnosis: Diagnosis, cause: Cause, gap: Gap) -> RunCause:
    others = [each for each in diagnosis.causes if each is not cause and isinstance(each.gap, Gap)]
    return RunCause(
        cause_text(cause),
        f"{_VALUE.sub('*', _first_path(gap))} {gap.first}",
        _harm(diagnosis, cause),
        tuple(cause.failures),
        diagnosis.safe_models,
        tuple(f"{cause_text(each)} ({_harm(diagnosis, each)})" for each in others),
        next(repair_lines(diagnosis)).removeprefix("repair    "),
        _rank(cause),
    )


def _rank(cause: Cause) -> tuple[int, int]:
    return list(MODELS).index(cause.model), Harm.CORRUPTION not in cause.harms


def _harm(diagnosis: Diagnosis, cause: Cause) -> str:
    """Return the harm, and where it is done; another power cut may do it on a real file system."""
    moment = "at this power cut " if cause.model == POSIX.name else ""
    return f"{harms_text(cause)}{moment}{weakest(diagnosis, cause)}"


def _first_path(gap: Gap) -> str:
    """Return the path to be synced; of a changed file that at the change, before any rename."""
    changes_content = isinstance(gap.first.operation, Write | Resize)
    return gap.first.path if changes_content else gap.path


def by_cause(findings: Iterable[Finding]) -> Sequence[Sequence[Finding]]:
    """Return the findings of each cause, those with the fewest steps first.

    Causes that do harm under stronger models come first: what only ``posix`` loses is last.
    """
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(cause_of(finding).group, []).append(finding)
    found = [
        sorted(group, key=lambda finding: len(finding.run.log.steps)) for group in groups.values()
    ]
    return sorted(found, key=lambda group: min(cause_of(finding).rank for finding in group))


def cause_of(finding: Finding) -> RunCause:
    """Return the cause of a finding; if none was searched, the files that its run loses."""
    return finding.cause or _unsearched(finding.run.log, NOT_SEARCHED)


def _unsearched(log: RunLog, reason: str) -> RunCause:
    """Return the files that a run loses as its cause, which others share that break its property.

    Losses of one file may have several causes.
    """
    lost = _lost(log, reason)
    return replace(lost, group=f"{log.broken}: {lost.group}", rank=_LAST)


def _lost(log: RunLog, barrier: str = "") -> RunCause:
    """Return the files of which power cuts lose operations, as a cause.

    ``barrier`` says why no missing barrier is named.
    """
    names = dict.fromkeys(name for step in log.steps for name in _lost_names(step.crashes))
    if not names:
        return _disturbed(log)
    text = f"a power cut loses operations on {', '.join(sorted(names))}"
    return RunCause(f"{text}; {barrier}" if barrier else text, text)


def _disturbed(log: RunLog) -> RunCause:
    """Return the last fault and the last crash, without numbers, as a cause.

    They break programs in many ways, so the property is named as well.
    """
    fault, crash = "", ""
    for step in log.steps:
        if step.action.fault_plan is not None:
            fault = f"fault {step.action.fault_plan}"
        if step.crashes:
            crash = f"{step.crashes[-1].point.kind} during {step.crashes[-1].during}"
    both = ", and ".join(filter(None, (fault, crash))) or "no crash and no fault"
    barrier = "; no fsync helps" if crash and not fault else ""
    text, group = (
        _VALUE.sub("*", f"{log.broken}: {log.detail}; {each}") for each in (both, crash or both)
    )
    return RunCause(f"{text}{barrier}", group, rank=_LAST if fault else (0, 0))


def _lost_names(crashes: Iterable[Crash]) -> Iterator[str]:
    """Yield the names of the files of which power cuts lost or tore operations."""
    for crash in crashes:
        survivors = crash.point.survivors
        if crash.disk is None or not (survivors.lost or survivors.torn):
            continue
        micros = crash.disk.unsynced().micros
        for loss in losses(micros, survivors, names_on(crash.disk)):
            for path in _PATH.findall(loss.text):
                name = path.rstrip("/").rpartition("/")[2]
                yield _VALUE.sub("*", _TEMPORARY.sub("", name)) or "/"
