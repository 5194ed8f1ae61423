"""The requirements of recording, each with its remedy."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from powercut.calibrate.file_system import FileSystem
from powercut.fuse.device import FUSE, LOOP_CONTROL
from powercut.fuse.mount import mount_error

_CONTAINER: Final = "in a container, start it with --privileged"
_DEVICES: Final = (FUSE, LOOP_CONTROL)

# Beside the directories of PATH: those of commands for the superuser.
_COMMANDS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def missing_requirements(file_systems: Iterable[FileSystem]) -> list[str]:
    """Return a sentence for each thing that recording these file systems needs and lacks."""
    if not sys.platform.startswith("linux"):
        return ["Linux is needed; --judge works everywhere"]
    if os.geteuid() != 0:
        return ["root is needed to mount file systems: run it with sudo"]
    systems = list(file_systems)
    return [*_missing_devices(), *_missing_file_systems(systems), *_missing_commands(systems)]


def command_path(name: str) -> str | None:
    """Return the path of a command, also of one for the superuser; None if there is none."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_COMMANDS)))


def _missing_devices() -> Iterator[str]:
    for device in _DEVICES:
        try:
            os.close(device.open())
        except OSError as error:
            yield (
                f"{device.path} cannot be opened ({error.strerror}): modprobe {device.module};"
                f" {_CONTAINER}"
            )


def _missing_file_systems(systems: Iterable[FileSystem]) -> Iterator[str]:
    for kind in ("fuse", *dict.fromkeys(system.kind.value for system in systems)):
        error = mount_error(kind)
        if error is None:
            continue
        if error.errno == errno.ENOSYS:
            yield "the kernel has no fsopen(2): Linux 5.8 or later is needed"
            return
        if error.errno == errno.EPERM:
            yield f"this process may not mount: {_CONTAINER}"
            return
        yield f"the kernel has no {kind} ({error.strerror}): modprobe {kind}"


def _missing_commands(systems: Iterable[FileSystem]) -> Iterator[str]:
    for command, package in dict.fromkeys((system.mkfs[0], system.package) for system in systems):
        if command_path(command) is None:
            yield f"{command} is not installed: install the package {package}"
