"""A failure as a page of plain text: verdict, steps, what each crash lost, how to run it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from faults.crash_point import CrashKind
from oracles.violation import Violation, shown
from powercut.action import Action
from powercut.step import Crash, Step
from sim.disk.disk import Disk

_TITLES: Final = {CrashKind.KILL: "KILL", CrashKind.POWER_CUT: "POWER CUT"}
_INODE: Final = re.compile(r"inode (\d+)")


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
    point, names = crash.point, _names(crash.disk)
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
    micros = [_INODE.sub(lambda found: _name(found, names), str(micro)) for micro in _micros(crash)]
    survivors = point.survivors
    for index in survivors.lost:
        stale = ", its place shows stale bytes" if index in survivors.stale else ""
        yield f"          lost   {micros[index]}{stale}"
    for index, kept in survivors.torn:
        yield f"          torn   {micros[index]}: {kept} bytes survived"
    if micros and not (survivors.lost or survivors.torn):
        yield f"          lost   nothing of {len(micros)} pending"


def _micros(crash: Crash) -> Sequence[object]:
    return crash.disk.pending().micros


def _names(disk: Disk) -> dict[int, str]:
    return {inode.number: path for path, inode in disk.snapshot().tree()}


def _name(found: re.Match[str], names: dict[int, str]) -> str:
    return names.get(int(found[1]), f"{found[0]} (no name)")
