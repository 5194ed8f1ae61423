"""A failure as a page of plain text: the verdict, the steps, and the data that crashes lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from faults.crash_point import CrashKind
from oracles.violation import Violation, shown
from powercut.counted import counted
from powercut.crash_text import lost_lines, names_on
from powercut.fuzz.action import WITH_FAULT
from powercut.fuzz.reproducer import Finding
from powercut.fuzz.run_log import RETURN, Crash, RecordedStep
from powercut.one_line import one_line
from sim.errors import text_of

_MOST_PRINTED: Final = 20
_FAILED: Final = "FAILED here"
_TITLES: Final = {CrashKind.KILL: "KILL", CrashKind.POWER_CUT: "POWER CUT"}


def story(finding: Finding) -> str:
    """Return the page of a failed run."""
    run, failure = finding.run.placed(), finding.run.failure
    lines = [headline(finding), "", "  step"]
    for number, step in enumerate(run.log.steps, 1):
        lines += _step(number, step)
    if not run.log.steps or run.log.steps[-1].outcome:
        lines.append(f"   end  faults lifted, work completed, two restarts  {_FAILED}")
    lines.append("")
    if isinstance(failure, Violation):
        width = max(map(len, failure.evidence), default=0)
        lines += [f"  {name:{width}}  {shown(value)}" for name, value in failure.evidence.items()]
        lines.append("")
    lines += _printed(finding.printed)
    lines += [f"  target  {run.log.target}", *finding.replay_lines()]
    if finding.cause is not None:
        lines += finding.cause.lines()
    return "\n".join(lines)


def headline(finding: Finding) -> str:
    """Return the violated property with its fingerprint, and the sentence that says how."""
    failure = finding.run.failure
    assert failure is not None
    title, statement = f"FAILED  {type(failure).__name__}", text_of(failure)
    if isinstance(failure, Violation):
        statement = failure.statement
    else:
        title += "  (raised by the system, not by the oracle)"
    fingerprint = finding.reproducer.fingerprint
    return f"{title}  on {finding.run.log.model}  fingerprint {fingerprint}\n  {statement}"


def _printed(lines: Sequence[str]) -> Iterator[str]:
    """Yield the last lines that the run has printed."""
    if not lines:
        return
    yield "  printed"
    if len(lines) > _MOST_PRINTED:
        yield f"          {counted(len(lines) - _MOST_PRINTED, 'line')} before"
    yield from (f"          {one_line(line)}".rstrip() for line in lines[-_MOST_PRINTED:])
    yield ""


def _step(number: int, step: RecordedStep) -> Iterator[str]:
    action = step.action.wrapped or step.action
    yield f"  {number:4}  {action}  {'' if step.crashes else _outcome(step)}".rstrip()
    if step.action.name == WITH_FAULT:
        yield f"        FAULT {step.action.fault_plan}"
    for crash in step.crashes:
        yield from _crash(crash)
    if step.crashes:
        yield f"          {_outcome(step)}"


def _outcome(step: RecordedStep) -> str:
    return step.outcome or _FAILED


def _crash(crash: Crash) -> Iterator[str]:
    point = crash.point
    if crash.operation == RETURN:
        where = f"after {crash.during} had returned"
    else:
        path = crash.path or "everything"
        where = (
            f"{point.phase} {crash.operation} {path}, "
            f"operation {point.operation}, in {crash.during}"
        )
    yield f"        {_TITLES[point.kind]} {where}"
    if point.kind is CrashKind.KILL:
        if point.kept:
            yield f"          kept   {counted(str(point.kept), 'byte')} of the write"
        return
    if crash.disk is None:
        return
    micros = crash.disk.unsynced().micros
    for line in lost_lines(micros, point.survivors, names_on(crash.disk), crash.places):
        yield f"          {line}"
