"""``powercut show``: the operations of a recording."""

from __future__ import annotations

from pathlib import Path

import click

from powercut.cli.command import Command
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.usage import asked_by_user
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuse.recording import load_recording
from powercut.report.operations import operation_lines


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """List the operations of the recording FILE.

    The operations have the numbers that findings of `powercut try` name. The acknowledgements stand
    between them. FILE is a recording of `powercut record`, or one that `powercut try` has kept.
    """
    with asked_by_user():
        recording = load_recording(file)
    workload = RecordedWorkload(recording.journal, recording.history(), mapped=recording.mapped)
    console = console_beside(None)
    for line in operation_lines(workload):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    click.get_current_context().exit(ExitCode.CLEAN)
