"""Machines that cannot mount a disk, and mounts by ``fusermount3``."""

from __future__ import annotations

import os
import shutil

import pytest

from powercut.fuse import disk_mount
from powercut.fuse.device import FUSE
from powercut.fuse.disk_mount import CannotMount, prepare_mounts
from tests.meta.source_tree import run_python
from tests.unit.fuse.recorded import needs_mounts

DESCRIPTORS_OF_A_PROGRAM = """
from powercut.fuse.disk_mount import MountWay
from powercut.fuse.run_program import new_mount_point, run_program
from sim.disk.disk import Disk

with new_mount_point() as path:
    run = run_program(Disk(), ("/bin/ls", "-l", "/proc/self/fd"), path, MountWay.FUSERMOUNT)
print(*(line.text for line in run.lines), sep="\\n")
"""


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/no-such", "No such file or directory"),
        (os.devnull, "another file is in its place"),
    ],
)
def test_a_device_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, path: str, reason: str
) -> None:
    monkeypatch.setattr(disk_mount, "FUSE", FUSE._replace(path=path))
    with pytest.raises(CannotMount, match=rf"^{path} cannot be opened \(({reason})\): modprobe"):
        prepare_mounts()


@needs_mounts
@pytest.mark.skipif(shutil.which("fusermount3") is None, reason="fusermount3 is not installed")
def test_a_program_does_not_hold_a_mount_by_fusermount() -> None:
    ran = run_python("-c", DESCRIPTORS_OF_A_PROGRAM)
    assert ran.returncode == 0, ran.stderr
    assert " 1 -> pipe:" in ran.stdout
    assert FUSE.path not in ran.stdout
