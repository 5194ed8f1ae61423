"""``powercut calibrate``: record real file systems of this machine, and judge the models."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from powercut.calibrate.calibration_file import CannotWriteRows, read_rows, row_writer
from powercut.calibrate.campaign import Campaign
from powercut.calibrate.file_system import FILE_SYSTEMS, FileSystem, file_systems_named
from powercut.calibrate.image_device import attached_devices
from powercut.calibrate.judgement import MODEL_OF
from powercut.calibrate.real_file_system import CannotRecord
from powercut.calibrate.recorder import recorder
from powercut.calibrate.requirements import missing_requirements
from powercut.calibrate.row import Row
from powercut.calibrate.tally import Contradiction, Tally
from powercut.cli.command import Command
from powercut.cli.completion import complete_from
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.usage import TimeRange, UsageMistake, asked_by_user, must_take_json
from powercut.counted import counted
from powercut.one_line import one_line
from powercut.report.calibration import contradiction_lines, counts_table, note_lines

_MINUTES: Final = 5


@click.command(cls=Command)
@click.argument("names", metavar="[FS]...", nargs=-1, shell_complete=complete_from(FILE_SYSTEMS))
@click.option(
    "--minutes",
    type=TimeRange(),
    default=_MINUTES,
    show_default=True,
    metavar="N",
    help="Record, and reduce forbidden outcomes, for this time.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the first program; the next programs have the seeds that follow.",
)
@click.option(
    "--json",
    "json_out",
    metavar="OUT",
    help="Write a line of JSON for each recorded program to this file (-: the standard output).",
)
@click.option(
    "--judge",
    "judged",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Record nothing; judge files that --json wrote, also compressed by gzip. Further "
    "files may follow.",
)
def command(
    names: tuple[str, ...],
    minutes: float,
    seed: int,
    json_out: str | None,
    judged: tuple[Path, ...],
) -> None:
    """Compare the persistence models with power cuts on file systems of this machine.

    Random programs of a few calls run on a real file system, on a block device that logs every
    write and flush. The kernel mounts the crash images of each program, and every tree that it
    shows must be allowed by the persistence model of that file system. Forbidden outcomes are
    reduced to the fewest calls. Recording needs Linux, root, FUSE, loop devices and mkfs; it
    touches no device and no mount that it did not make.

    FS is ext4 (data=ordered), ext4wb (data=writeback), ext4j (data=journal), ext4nd and
    ext4wbnd (the same with nodelalloc), xfs or btrfs; without one: ext4, xfs and btrfs.
    """
    console = console_beside(json_out)
    tally = Tally()
    if judged:
        if json_out is not None:
            raise UsageMistake("--json writes recordings, and --judge only reads them")
        with asked_by_user():
            _judge(tally, [*judged, *_files(names)], [n for n in names if n in FILE_SYSTEMS])
        _report(console, tally, tally.smallest_of_groups())
        code = _exit_code(tally)
    else:
        with asked_by_user():
            systems = file_systems_named(names)
        if json_out is not None:
            must_take_json(json_out)
        if missing := missing_requirements(systems):
            raise UsageMistake(f"cannot record: {'; '.join(missing)}")
        code = _record(console, systems, tally, Plan(seed, 60 * minutes, json_out))
    click.get_current_context().exit(code)


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a recording."""

    seed: int
    seconds: float
    json_out: str | None


def _files(names: Sequence[str]) -> list[Path]:
    """Return the arguments that are files: a shell expands ``--judge *.jsonl`` to them."""
    return [Path(name) for name in names if name not in FILE_SYSTEMS]


def _judge(tally: Tally, paths: Sequence[Path], wanted: Sequence[str]) -> None:
    for path in paths:
        for row in read_rows(path):
            if not wanted or row["fs"] in wanted:
                tally.add(row)


def _record(console: Console, systems: Sequence[FileSystem], tally: Tally, plan: Plan) -> ExitCode:
    with _removal_verified(console), _problems_as_mistakes(), ExitStack() as stack:
        write: Callable[[Row], None] = _no_row
        if plan.json_out is not None:
            write = stack.enter_context(row_writer(plan.json_out))
        show = stack.enter_context(_progress(console, tally))
        recorders = {system.name: stack.enter_context(recorder(system)) for system in systems}

        def on_row(row: Row) -> None:
            write(row)
            show()

        campaign = Campaign(recorders, tally, time.monotonic, on_row)
        try:
            campaign.run(plan.seed, plan.seconds)
        except KeyboardInterrupt:
            console.print("interrupted")
            return ExitCode.INTERRUPTED
        finally:
            stack.close()
            _report(console, tally, campaign.contradictions())
    return _exit_code(tally)


def _no_row(_row: Row) -> None:
    """Write nothing."""


@contextmanager
def _problems_as_mistakes() -> Iterator[None]:
    try:
        yield
    except (CannotRecord, CannotWriteRows) as problem:
        raise UsageMistake(str(problem)) from None


@contextmanager
def _removal_verified(console: Console) -> Iterator[None]:
    """Print at the end, also after a failure, whether a loop device is still attached."""
    try:
        yield
    finally:
        attached = attached_devices(os.getpid())
        if attached:
            devices = " ".join(attached)
            console.print(f"still attached: {devices}; to detach: losetup -d {devices}")
        else:
            console.print("every mount, loop device and image that was made is removed")


@contextmanager
def _progress(console: Console, tally: Tally) -> Iterator[Callable[[], None]]:
    """Yield a function that shows the counts on a terminal."""
    if not console.is_terminal:
        yield lambda: None
        return
    with console.status("making file systems") as status:

        def show() -> None:
            programs = sum(counts.programs for counts in tally.counts.values())
            status.update(
                f"{counted(programs, 'program')}, {len(tally.contradictions)} contradict a model"
            )

        yield show


def _report(
    console: Console, tally: Tally, contradictions: Sequence[tuple[Contradiction, int]]
) -> None:
    console.print(counts_table(tally.counts, {name: MODEL_OF[name].name for name in tally.counts}))
    for line in note_lines(tally.counts):
        console.print(line, soft_wrap=True)
    for found, programs in contradictions:
        for line in contradiction_lines(found, programs):
            console.print(one_line(line), soft_wrap=True)
        console.print()


def _exit_code(tally: Tally) -> ExitCode:
    return ExitCode.VIOLATION if tally.contradictions else ExitCode.CLEAN
