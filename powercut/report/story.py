"""A failure as a page of plain text: verdict, steps, what each crash lost, how to run it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from faults.crash_point import CrashKind
from oracles.violation import Violation, shown
from powercut.fuzz.action import Action
from powercut.fuzz.step import Crash, Step
from powercut.report.crash_text import lost_lines, names_on

_TITLES: Final = {CrashKind.KILL: "KILL", CrashKind.POWER_CUT: "POWER CUT"}


def story(
    steps: Sequence[Step], failure: Exception, model: str, fingerprint: str, path: Path
) -> str:
    """Tell a run that ended in ``failure``; ``path`` is its reproducer."""
    violation = isinstance(failure, Violation)
    statement = failure.statement if isinstance(failure, Violation) else str(failure)
    title = f"FAILED  {type(failure).__name__}{'' if violation else '  (not a violation: raised)'}"
    lines = [f"{title}  on {model}  fingerprint {fingerprint}", f"  {statement}", "", "  step"]
    for step in steps:
        lines += _step(step)
    lines.append("")
    if isinstance(failure, Violation):
        width = max(map(len, failure.evidence), default=0)
        lines += [f"  {name:{width}}  {shown(value)}" for name, value in failure.evidence.items()]
        lines.append("")
    lines.append(f"  replay  powercut replay {path}")
    return "\n".join(lines)


def _step(step: Step) -> Iterator[str]:
    action = step.action
    wrapped = action.arguments.get("action")
    if wrapped is not None:
        action = Action.of_plain(wrapped)
    yield f"  {step.number:4}  {action}  {'' if step.crashes else _outcome(step)}".rstrip()
    if step.action.name == "with_fault":
        yield f"        FAULT {step.action.arguments['plan']}"
    for crash in step.crashes:
        yield from _crash(crash)
    if step.crashes:
        yield f"          {_outcome(step)}"


def _outcome(step: Step) -> str:
    return step.outcome or "FAILED here"


def _crash(crash: Crash) -> Iterator[str]:
    point = crash.point
    if crash.operation is None:
        where = f"when {crash.during} had returned"
    else:
        path = crash.operation.path or "everything"
        where = (
            f"{point.phase} {crash.operation_name} {path}, "
            f"operation {point.operation}, in {crash.during}"
        )
    yield f"        {_TITLES[point.kind]} {where}"
    if point.kind is CrashKind.KILL:
        if point.kept:
            yield f"          kept   {point.kept} bytes of the write"
        return
    if crash.disk is None:
        return
    micros = crash.disk.unsynced().micros
    for line in lost_lines(micros, point.survivors, names_on(crash.disk)):
        yield f"          {line}"
