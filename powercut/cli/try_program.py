"""``powercut try``: run any program, crash it everywhere, check the files that are left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from powercut.cli.command import Command
from powercut.cli.completion import complete_from
from powercut.cli.disk_dumper import dump_option
from powercut.cli.exit_code import ExitCode
from powercut.cli.failing_disk import FailingDisks
from powercut.cli.interruption import Interruption
from powercut.cli.output import console_beside, json_option, print_lines, write_json
from powercut.cli.pace import Progress
from powercut.cli.record import OPTIONS_FIRST, print_recording, setup_option, timeout_option
from powercut.cli.search_failed import end_of_search
from powercut.cli.usage import asked_by_user, must_take_json
from powercut.counted import counted
from powercut.explorer.cause import Diagnosis
from powercut.explorer.diagnosis import Diagnosed, diagnosed
from powercut.fuse.disk_mount import MountWay, prepare_mounts
from powercut.fuse.image_check import CommandCheck, FilesCheck, ImageCheck
from powercut.fuse.program_judge import MOST_CHECKS, ProgramJudge
from powercut.fuse.record import record
from powercut.fuse.recording import Recording, load_recording, recording_digest, save_recording
from powercut.fuzz.campaign.workers import cores
from powercut.fuzz.reproducer import FAILURES
from powercut.report.exploration import exploration_table, plain_models, verdict_line
from powercut.report.findings import (
    MOST_FINDINGS,
    endless_lines,
    finding_lines,
    plain_causes,
    short_line,
)
from powercut.report.repair import repair_lines
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.errors import HarnessError

_NOTHING_WRITTEN = "the check wrote nothing, so there was no recovery to crash"
_NO_RECOVERY = (
    "no check that was recorded wrote anything, so none was crashed; a greater -n records more"
)
_BLIND_CHECK = (
    "the check passes also if everything is lost that was acknowledged; it must compare the files "
    "with the lines in $POWERCUT_ACKS"
)
_BLIND_COMPARISON = (
    "the disk with which the program starts passes too, because no content of a file or symbolic "
    "link that exists at the end is new; --check can look at removals, directories and permissions"
)


@click.command("try", cls=Command, context_settings=OPTIONS_FIRST)
@setup_option
@click.option(
    "--check",
    metavar="CMD",
    help="Judge each image by this shell command: exit status 0 passes.  [default: every file "
    "and symbolic link must be old or new]",
)
@click.option(
    "--model",
    metavar="MODEL",
    default="all",
    show_default=True,
    shell_complete=complete_from(("all", *MODELS)),
    help=f"Persistence model: all, {', '.join(MODELS)}.",
)
@click.option(
    "-n",
    "--checks",
    type=click.IntRange(1),
    metavar="N",
    help="The most images to check beside the disk at the start, those that find most bugs first. "
    "Where one fails, some that lose less are checked as well. "
    f"[default: {MOST_CHECKS}; fewer if a check command gets large files]",
)
@click.option(
    "--nested",
    is_flag=True,
    help="Crash the check as well, where it passes and writes: it is a recovery.",
)
@timeout_option
@click.option(
    "--recording",
    "recorded",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Run no program; judge a file of `powercut record`.",
)
@dump_option
@json_option
@click.argument("program", metavar="-- CMD...", nargs=-1, type=click.UNPROCESSED)
def command(
    program: tuple[str, ...],
    setup: str,
    check: str | None,
    model: str,
    checks: int | None,
    nested: bool,
    timeout: float,
    recorded: Path | None,
    dump_folder: Path | None,
    json_out: str | None,
) -> None:
    """Run any program on a simulated disk, crash it everywhere, check the files that are left.

    CMD runs in a directory that is the root of the disk, so it must use relative paths. Each
    line of its stdout is an acknowledgement, and so is exit status 0: from then on a crash must
    not lose the data. The check command runs in a directory with the files that a crash left;
    the environment variable POWERCUT_ACKS names a file with the lines that were acknowledged
    before the crash, "exit 0" for exit status 0.
    """
    with asked_by_user():
        models = tuple(MODELS.values()) if model == "all" else (model_named(model),)
        if (recorded is None) == (not program):
            raise HarnessError("give either a program, after --, or --recording FILE")
        if recorded is not None and setup:
            raise HarnessError("--setup has no use with --recording, which starts from an image")
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    with asked_by_user():
        way = prepare_mounts()
        if recorded is None:
            recording = record(program, setup, check or "", way)
        else:
            recording = _loaded(recorded, check)
        recording.must_say_something()
        if nested and not recording.check:
            raise HarnessError("--nested crashes the check; give the command with --check")
        print_recording(console, recording)
        image_check = _check(recording, timeout, way)
        crashed = image_check if nested and isinstance(image_check, CommandCheck) else None
        progress = Progress(console)
        interruption = Interruption()
        judge = ProgramJudge(
            recording, image_check, checks, cores(), crashed, progress.show,
            is_over=lambda: interruption.happened,
        )  # fmt: skip
        with _mount_point(recording.mount_point), progress.shown("checking images"):
            keep = partial(_keep_for_report, console, recording, recorded)
            diagnosis, error = _judged(judge, models, interruption, keep)
    disks = FailingDisks(recording, dump_folder)
    _report(console, judge, diagnosis, recording, disks)
    if nested and not judge.counts.recoveries and not interruption.happened:
        console.print(f"note: {_NO_RECOVERY if judge.counts.unrecorded else _NOTHING_WRITTEN}")
    _print_place_of_checks(console, recording, way)
    file = _kept(console, recording, recorded) if diagnosis.unsafe_models else None
    if json_out is not None:
        _write(json_out, judge, diagnosis, recording, file, disks)
    _print_next_step(console, file, error)
    click.get_current_context().exit(_exit_code(diagnosis, interruption))


def _loaded(recorded: Path, check: str | None) -> Recording:
    recording = load_recording(recorded)
    return recording if check is None else replace(recording, check=check)


def _check(recording: Recording, timeout_s: float, way: MountWay) -> ImageCheck:
    if recording.check:
        return CommandCheck(recording.check, timeout_s, recording, way)
    return FilesCheck(recording)


@contextmanager
def _mount_point(path: str) -> Iterator[None]:
    """Make the directory in which the disk was mounted again, for the checks."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"cannot make {path}, where the disk was: {error.strerror}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.rmdir(path)


def _judged(
    judge: ProgramJudge,
    models: Sequence[PersistenceModel],
    interruption: Interruption,
    keep: Callable[[], None],
) -> Diagnosed:
    """Judge the recording; ``keep`` is called if that ends with an error of powercut."""
    judge.must_pass_undamaged()
    try:
        with interruption.awaited():
            return diagnosed(judge.judge(models))
    except HarnessError:
        raise
    except Exception:
        keep()
        raise


def _print_place_of_checks(console: Console, recording: Recording, way: MountWay) -> None:
    if not way.is_private:
        console.print(f"note: checks did not run in {recording.mount_point}, but beside it")


def _print_next_step(console: Console, file: Path | None, error: Exception | None) -> None:
    """Print what the file of a failure is for; raise an error of the search for its barriers."""
    if file is not None:
        console.print(f"all operations: powercut show {file}", soft_wrap=True)
        console.print(f"on real file systems: powercut confirm {file}", soft_wrap=True)
    if error is None:
        return
    if file is not None and not isinstance(error, HarnessError):
        _print_repetition(console, file)
    raise end_of_search(error)


def _print_repetition(console: Console, file: Path) -> None:
    command = f"powercut try --recording {file}"
    console.print(f"the recording is kept: {command} repeats the error", soft_wrap=True)


def _exit_code(diagnosis: Diagnosis, interruption: Interruption) -> ExitCode:
    if interruption.happened:
        return ExitCode.INTERRUPTED
    return ExitCode.VIOLATION if diagnosis.unsafe_models else ExitCode.CLEAN


def _report(
    console: Console,
    judge: ProgramJudge,
    diagnosis: Diagnosis,
    recording: Recording,
    disks: FailingDisks,
) -> None:
    counts = judge.counts
    console.print(
        f"checked {counts.checked:,} of {counted(counts.images, 'image')}", soft_wrap=True
    )
    if counts.recoveries:
        console.print(f"crashed the check itself on {counts.recoveries:,} of them")
    if judge.is_blind:
        note = _BLIND_CHECK if recording.check else _BLIND_COMPARISON
        console.print(f"note: {note}", soft_wrap=True)
    if counts.flaky:
        console.print(f"flaky: the check failed once and passed once on {counts.flaky:,} of them")
    console.print(exploration_table(diagnosis))
    for number, cause in enumerate(diagnosis.causes, 1):
        whole = number <= MOST_FINDINGS
        dumped = [*disks.dump(diagnosis.explorations[cause.model], cause.failure)]
        lines = [*finding_lines(diagnosis, cause), *dumped] if whole else [short_line(cause)]
        print_lines(console, lines)
        if whole:
            console.print()
    print_lines(console, [*repair_lines(diagnosis), *endless_lines(diagnosis)])
    console.print(verdict_line(diagnosis))


def _write(
    out: str,
    judge: ProgramJudge,
    diagnosis: Diagnosis,
    recording: Recording,
    file: Path | None,
    disks: FailingDisks,
) -> None:
    passed = "stopped" if diagnosis.unfinished_models else "clean"
    write_json(
        out,
        {
            "verdict": "violation" if diagnosis.unsafe_models else passed,
            "models": plain_models([diagnosis.explorations]),
            "findings": plain_causes(
                diagnosis, [str(file or "")] * len(diagnosis.causes), disks.paths
            ),
            "images": judge.counts.images,
            "checked": judge.counts.checked,
            "flaky": judge.counts.flaky,
            "recoveries": judge.counts.recoveries,
            "blind_check": judge.is_blind,
            "notes": list(recording.notes),
        },
    )


def _keep_for_report(console: Console, recording: Recording, recorded: Path | None) -> None:
    if (file := _kept(console, recording, recorded)) is not None:
        _print_repetition(console, file)


def _kept(console: Console, recording: Recording, recorded: Path | None) -> Path | None:
    """Return the file of the recording, which is written if it came from no file.

    None if it cannot be written, which is printed: the verdict stands without it.
    """
    if recorded is not None:
        return recorded
    name = Path(recording.command[0]).name
    path = FAILURES / f"{name}-{recording_digest(recording)}.recording"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_recording(recording, path)
    except OSError as refused:
        console.print(f"not kept: cannot write {path}: {refused.strerror}", soft_wrap=True)
        return None
    return path
