"""``powercut replay``: repeat a failure of ``run`` or ``explore``, without Hypothesis."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from powercut.breakpoints import breakpoints_passed_over
from powercut.causes.run_diagnosis import REPLAY_SECONDS
from powercut.cli.command import Command
from powercut.cli.completion import complete_tags
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.replay_failure import replay_failure, with_target
from powercut.cli.search_failed import end_of_search
from powercut.cli.usage import asked_by_user
from powercut.explorer.kept_failure import format_of, is_kept_failure
from powercut.fuse.recording import FORMAT as RECORDING
from powercut.fuzz.drivers.replay import Replay, Verdict, replay
from powercut.fuzz.printed import PRINTED
from powercut.fuzz.reproducer import Finding, Reproducer, read_reproducer, versions
from powercut.fuzz.story import story
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.target_mistake import DEPENDS_ON_MORE
from powercut.reference import is_reference
from powercut.registry import Registry
from powercut.report.cause import searched
from sim.disk.crash.persistence import model_named
from sim.errors import HarnessError

_EXIT_CODES: Final = {
    Verdict.SAME: ExitCode.VIOLATION,
    Verdict.DIFFERENT: ExitCode.VIOLATION,
    Verdict.PASSES: ExitCode.CLEAN,
    Verdict.DIVERGED: ExitCode.DIVERGED,
}


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    metavar="TARGET",
    shell_complete=complete_tags("targets", "workloads"),
    help="Run it on this registered target or workload, or module:object.  [default: the recorded "
    "tag]",
)
def command(file: Path, target: str | None) -> None:
    """Repeat the failure in FILE.

    A reproducer of powercut run is repeated byte for byte. Prints whether the run fails in the
    same way, fails in another way, passes now, or diverges: it comes to an action that is not
    possible, or to a choice that was not recorded.

    For a failure of powercut explore, the check is run on the disk of the recorded crash. Then
    the workload is run and explored again under the same model. Prints whether it passes now or
    fails again.
    """
    if is_kept_failure(file):
        code = replay_failure(console_beside(None), file, target)
        click.get_current_context().exit(code)
    with asked_by_user():
        if format_of(file) == RECORDING:
            raise HarnessError(
                f"{file} is the recording of a program: judge it again with powercut try "
                f"--recording {file}"
            )
        reproducer = read_reproducer(file)
        entry = _target(reproducer, file, target)
        model_named(reproducer.log.model)
    result = replay(reproducer, entry.make_target)
    error = _print(console_beside(None), reproducer, result, file)
    if error is not None:
        raise end_of_search(error)
    click.get_current_context().exit(_EXIT_CODES[result.verdict])


def _target(reproducer: Reproducer, file: Path, name: str | None) -> TargetEntry:
    """Return the target to replay on: the one called ``name``, else the recorded one."""
    registry = Registry.here()
    tag = reproducer.log.target
    if name is not None:
        return replace(registry.target(name), tag=tag)
    if is_reference(tag) or tag in registry.config.targets:
        try:
            return registry.target(tag)
        except HarnessError as mistake:
            raise HarnessError(with_target(mistake, file, tag)) from None
    known = ", ".join(registry.config.targets) or "none"
    raise HarnessError(
        f"{file} is of the target {tag!r}, which is not registered (registered: {known}); "
        "register it under [tool.powercut.targets], or give --target module:object"
    )


def _print(
    console: Console, reproducer: Reproducer, result: Replay, file: Path
) -> Exception | None:
    """Print the verdict; return the error that has ended the search for its cause, if one has."""
    error: Exception | None = None
    if result.verdict in {Verdict.SAME, Verdict.DIFFERENT}:
        with redirect_stdout(PRINTED), redirect_stderr(PRINTED), breakpoints_passed_over():
            found = searched(Finding(result.run, reproducer, file), REPLAY_SECONDS)
            page, error = story(found.finding), found.error
        console.print(page, soft_wrap=True)
        console.print()
    console.print(str(result), soft_wrap=True)
    if result.identical:
        return error
    if result.verdict is Verdict.DIFFERENT:
        log = reproducer.log
        console.print(f"recorded: {log.broken}: {log.statement}", soft_wrap=True)
    if result.verdict is Verdict.DIVERGED:
        console.print(f"the system has changed since, or {DEPENDS_ON_MORE}", soft_wrap=True)
    here = versions()
    for name, recorded in reproducer.versions.items():
        if here.get(name, recorded) != recorded:
            console.print(f"recorded with {name} {recorded}, replayed with {here[name]}")
    return error
