"""``powercut confirm``: repeat a finding on real file systems."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from powercut.calibrate.confirmation import Confirmation, Confirmer
from powercut.calibrate.file_system import FILE_SYSTEMS, FileSystem, file_systems_named
from powercut.calibrate.real_file_system import real_file_system
from powercut.calibrate.requirements import missing_requirements
from powercut.cli.command import Command
from powercut.cli.completion import complete_from
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import busy, console_beside
from powercut.cli.record import timeout_option
from powercut.cli.usage import UsageMistake, asked_by_user
from powercut.counted import counted
from powercut.fuse.disk_mount import prepare_mounts
from powercut.fuse.recording import Recording, load_recording

_IMAGES: Final = 100
_SHOWN: Final = 4


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("names", metavar="[FS]...", nargs=-1, shell_complete=complete_from(FILE_SYSTEMS))
@click.option(
    "--images",
    type=click.IntRange(2),
    metavar="N",
    default=_IMAGES,
    show_default=True,
    help="The approximate number of crash images to mount for each file system.",
)
@timeout_option
def command(file: Path, names: tuple[str, ...], images: int, timeout: float) -> None:
    """Repeat a finding of `powercut try` on real file systems of this machine.

    The program of the recording FILE runs on a block device that logs every write and flush. The
    kernel mounts crash images of that log, and the check of the recording judges them. FS is
    ext4, ext4wb, ext4j, ext4nd, ext4wbnd, xfs or btrfs; without one: ext4, xfs and btrfs. It
    needs root, FUSE, loop devices and mkfs, and touches no device that it did not make.
    """
    with asked_by_user():
        systems = file_systems_named(names)
        recording = load_recording(file)
        if not os.access(recording.command[0], os.X_OK):
            raise UsageMistake(f"the program of the recording, {recording.command[0]}, is not here")
    if missing := missing_requirements(systems):
        raise UsageMistake(f"cannot confirm: {'; '.join(missing)}")
    console = console_beside(None)
    with asked_by_user():
        prepare_mounts()
        seen = [_confirm(console, recording, system, images, timeout) for system in systems]
    click.get_current_context().exit(ExitCode.VIOLATION if any(seen) else ExitCode.CLEAN)


def _confirm(
    console: Console, recording: Recording, system: FileSystem, images: int, timeout_s: float
) -> bool:
    """Confirm on one file system, print the result, and return whether the finding was seen."""
    os.makedirs(recording.mount_point, exist_ok=True)
    try:
        with busy(console, system.name), real_file_system(system) as real:
            found = Confirmer(recording, real, timeout_s).confirm(images)
    finally:
        with suppress(OSError):
            os.rmdir(recording.mount_point)
    console.print(_line(system.name, found), soft_wrap=True)
    for statement in found.statements[:_SHOWN]:
        console.print(f"  {statement}", soft_wrap=True)
    return bool(found.failed)


def _line(name: str, found: Confirmation) -> str:
    seen = f"seen in {found.failed} of" if found.failed else "not seen in"
    refused = f"; the kernel refused to mount {found.refused}" if found.refused else ""
    return f"{name}: {seen} {counted(found.images, 'image')}{refused}"
