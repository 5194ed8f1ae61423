"""Records a program: prepares a disk by the setup command, then runs the program on it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from powercut.fuse.disk_mount import MountWay
from powercut.fuse.program import located
from powercut.fuse.recording import Acknowledgement, Recording
from powercut.fuse.run_program import SHELL, new_mount_point, run_program
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.errors import HarnessError


def record(command: Sequence[str], setup: str, check: str, way: MountWay) -> Recording:
    """Run ``command`` on a new disk, which the shell command ``setup`` may prepare.

    Everything that the setup wrote is durable when the program starts. Raises ``HarnessError``
    if the program does not exist, and if the setup fails.
    """
    found = located(command)
    with new_mount_point() as mount_point:
        image = _new_image()
        if setup:
            image = _prepared(image, setup, mount_point, way)
        disk = Disk(image, now_ns=time.time_ns)
        run = run_program(disk, found, mount_point, way)
    acknowledgements = list(run.lines)
    if not run.exit_status:
        acknowledgements.append(Acknowledgement(disk.operations, "exit 0"))
    return Recording(
        command=found,
        setup=setup,
        check=check,
        mount_point=mount_point,
        exit_status=run.exit_status,
        acknowledgements=tuple(acknowledgements),
        notes=run.notes,
        journal=disk.journal,
        mapped=run.mapped,
    )


def _new_image() -> Image:
    """Return an empty file system whose root belongs to this user."""
    disk = Disk()
    disk.set_attributes(disk.root, "/", uid=os.geteuid(), gid=os.getegid())
    return disk.unmounted()


def _prepared(image: Image, setup: str, mount_point: str, way: MountWay) -> Image:
    disk = Disk(image, now_ns=time.time_ns)
    run = run_program(disk, (*SHELL, setup), mount_point, way)
    if run.exit_status:
        raise HarnessError(f"the setup command ended with exit status {run.exit_status}: {setup}")
    return disk.unmounted()
