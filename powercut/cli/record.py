"""``powercut record``: run any program on a simulated disk, and keep the journal."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from powercut.cli.command import Command
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.usage import TimeRange, UsageMistake, asked_by_user
from powercut.counted import counted
from powercut.fuse.disk_mount import prepare_mounts
from powercut.fuse.image_check import TIMEOUT_S
from powercut.fuse.record import record
from powercut.fuse.recording import Recording, save_recording
from powercut.one_line import one_line

_SHOWN_LINES = 8
_SHOWN_CHARACTERS = 100

OPTIONS_FIRST = {"allow_interspersed_args": False}
"""Options behind the name of the program are the program's, also without ``--``."""

setup_option = click.option(
    "--setup",
    metavar="CMD",
    default="",
    help="Run this shell command first; everything that it writes is durable.",
)

timeout_option = click.option(
    "--timeout",
    type=TimeRange(),
    metavar="SECONDS",
    default=TIMEOUT_S,
    show_default=True,
    help="Time for one check.",
)


@click.command(cls=Command, context_settings=OPTIONS_FIRST)
@setup_option
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the recording to this file.  [default: the name of the program, .recording]",
)
@click.argument("program", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(program: tuple[str, ...], setup: str, out: Path | None) -> None:
    """Run any program on a simulated disk, and save the journal of its operations.

    CMD runs in a directory that is the root of the disk, so it must use relative paths. Each
    line of its stdout is an acknowledgement, and so is exit status 0. `powercut try --recording`
    judges the file; it can be attached to an issue.
    """
    file = out or Path(f"{Path(program[0]).name}.recording")
    if not file.absolute().parent.is_dir():
        raise UsageMistake(f"cannot write {file}: there is no directory {file.parent}")
    with asked_by_user():
        recording = record(program, setup, "", prepare_mounts())
        recording.must_say_something()
    try:
        save_recording(recording, file)
    except OSError as refused:
        raise UsageMistake(f"cannot write {file}: {refused.strerror}") from None
    console = console_beside(None)
    print_recording(console, recording)
    console.print(f"written: {file}")
    click.get_current_context().exit(ExitCode.CLEAN)


def print_recording(console: Console, recording: Recording) -> None:
    """Print the size of a recording, its acknowledgements and its notes."""
    acknowledged = recording.acknowledgements
    console.print(
        f"{counted(len(recording.journal), 'operation')}, "
        f"{counted(len(acknowledged), 'acknowledgement')}, exit status {recording.exit_status}",
        soft_wrap=True,
    )
    for after, text in acknowledged[:_SHOWN_LINES]:
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
        console.print(f"  after operation {after}: {one_line(shown)}", soft_wrap=True)
    if len(acknowledged) > _SHOWN_LINES:
        console.print(f"  and {len(acknowledged) - _SHOWN_LINES} more")
    for note in recording.notes:
        console.print(f"note: {one_line(note)}", soft_wrap=True)
