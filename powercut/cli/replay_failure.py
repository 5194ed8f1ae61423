"""``powercut replay`` of a failure of ``explore``: the recorded crash, then the program again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from powercut.breakpoints import breakpoints_passed_over
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import print_lines
from powercut.cli.search_failed import end_of_search
from powercut.cli.usage import UsageMistake, asked_by_user
from powercut.explorer.crash_state import ChangedRecovery, image_after
from powercut.explorer.diagnosis import diagnosed
from powercut.explorer.explore import judge_of, judged
from powercut.explorer.journals import MOST_SECTORS
from powercut.explorer.kept_failure import KeptFailure, load_failure
from powercut.explorer.large_writes import fitting
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration, Failure
from powercut.interpose.interposed import DEFAULT_ROOT
from powercut.registry import Registry, WorkloadEntry
from powercut.report.findings import crash_lines, report_lines
from sim.disk.crash.persistence import model_named
from sim.disk.disk import Disk
from sim.errors import HarnessError


def replay_failure(console: Console, file: Path, workload: str | None) -> ExitCode:
    """Check the recorded crash of ``file`` again, then run and explore the program again.

    ``workload`` is the tag or import string of the workload, or None for the recorded one.
    """
    with asked_by_user():
        kept = load_failure(file)
        model_named(kept.model)
        entry = _workload(kept, file, workload)
    try:
        print_lines(console, _recorded_crash(kept, entry))
        again = _explored_again(kept, entry)
    except HarnessError as mistake:
        raise UsageMistake(f"{entry.tag}: {mistake}") from None
    if again.safe:
        console.print(f"passes now: {entry.tag} was run again: {again}", soft_wrap=True)
        return ExitCode.CLEAN
    console.print(f"fails again: {entry.tag} was run again: {again}", soft_wrap=True)
    with breakpoints_passed_over():
        diagnosis, error = diagnosed({again.model.name: again})
        print_lines(console, report_lines(diagnosis))
    if error is not None:
        raise end_of_search(error, entry.tag)
    return ExitCode.VIOLATION


def _workload(kept: KeptFailure, file: Path, name: str | None) -> WorkloadEntry:
    """Return the workload called ``name``, else the recorded one, with the recorded check."""
    registry = Registry.here()
    try:
        registry.workload(name or kept.tag)
    except HarnessError as mistake:
        raise HarnessError(str(mistake) if name else with_target(mistake, file, kept.tag)) from None
    try:
        return registry.workload(name or kept.tag, kept.check)
    except HarnessError as mistake:
        raise HarnessError(f"the check that {file} was found with: {mistake}") from None


def with_target(mistake: HarnessError, file: Path, tag: str) -> str:
    """Return a mistake about the recorded workload or target, with the option that helps."""
    return f"{mistake}; {file} is of {tag}: if it has moved, give --target module:object"


def _recorded_crash(kept: KeptFailure, entry: WorkloadEntry) -> list[str]:
    """Check the disk of the recorded crash, and return the lines that say how it ended."""
    model = fitting(model_named(kept.model), kept.recorded.journal, MOST_SECTORS)
    recorded, judge = judge_of(kept.recorded, entry.check, _limits(kept, entry), prints=True)
    known = recorded.history.known(kept.entries)
    try:
        image = image_after(
            recorded.journal, model, kept.crashes, lambda disk: judge.violation(disk, known)
        )
    except ChangedRecovery:
        return ["the recorded crash is not possible now: the recovery has changed since"]
    violation = judge.violation(Disk(image, model), known)
    if violation is None:
        return ["the recorded crash passes the check now"]
    failure = Failure(kept.crashes, kept.entries, None, violation)
    lines = [
        f"FAILED  {violation.property_name}  on {model.name}",
        *(f"  {line}" for line in violation.statement.splitlines()),
        *crash_lines(Exploration(model, recorded, judge), failure),
    ]
    if (violation.property_name, violation.statement) == (kept.property_name, kept.statement):
        return [*lines, "the recorded crash fails in the same way"]
    return [
        *lines,
        f"the recorded crash fails in another way; it was {kept.property_name}: {kept.statement}",
    ]


def _explored_again(kept: KeptFailure, entry: WorkloadEntry) -> Exploration:
    model, limits = model_named(kept.model), _limits(kept, entry)
    image, root = kept.recorded.journal.image, kept.recorded.root or DEFAULT_ROOT
    recorded = record(entry.run, model, image, root, limits)
    with breakpoints_passed_over():
        return judged(recorded, entry.check, [model], limits)[model.name]


def _limits(kept: KeptFailure, entry: WorkloadEntry) -> Limits:
    return replace(
        entry.limits,
        states_per_point=kept.states_per_point,
        nested=kept.nested,
        timeout=kept.timeout,
    )
