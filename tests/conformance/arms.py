"""The two arms of the conformance suite: the simulated process, and a directory of Linux.

A test uses only ``Arm``: an ``os``, an ``open``, an ``fcntl``, and an empty directory. In both
arms the directory lies several levels below ``/``, so that ``..`` leads to equal directories.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.disk.calls.modules import FcntlModule, OsModule
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.disk import Disk

FLOORS = "/".join(["floor"] * 6)
NOBODY = 65534
"""The user without privileges, where the tests run as root."""


@dataclass(frozen=True)
class Arm:
    """One of the two; ``top`` is the absolute path of its directory, without a slash at the end."""

    name: str
    os: Any
    open: Callable[..., Any]
    fcntl: Any
    top: str

    @property
    def is_simulated(self) -> bool:
        return self.name == "simulated"

    def path(self, name: str) -> str:
        """Return the absolute path of a name in the directory."""
        return f"{self.top}/{name}"


def simulated(uid: int, model: PersistenceModel = POSIX) -> Arm:
    """Return a fresh simulated disk and a process of user ``uid``."""
    root = Process(Disk(model=model))
    top = ""
    for floor in FLOORS.split("/"):
        top = f"{top}/{floor}"
        root.mkdir(top)
    root.chmod(top, 0o777)
    is_own = uid == os.geteuid()
    gid, groups = (os.getegid(), os.getgroups()) if is_own else (uid, [])
    return _arm(Process(root.disk, uid=uid, gid=gid, groups=groups), top)


def as_root(arm: Arm, disk: Disk | None = None) -> Arm:
    """Return the simulated arm, or the same directory of another disk, as root."""
    return _arm(Process(disk or arm.os.disk), arm.top)


def _arm(process: Process, top: str) -> Arm:
    return Arm("simulated", OsModule(process), process.open_file, FcntlModule(process), top)


@contextmanager
def real() -> Iterator[Arm]:
    """Provide a fresh directory, which is deleted afterwards."""
    base = Path(tempfile.mkdtemp(prefix="conformance"))
    base.chmod(0o755)
    mask = os.umask(0o022)
    try:
        place = base / FLOORS
        place.mkdir(parents=True)
        place.chmod(0o777)
        yield Arm("real", os, open, fcntl, str(place))
    finally:
        os.umask(mask)
        shutil.rmtree(base)


def unprivileged() -> int:
    """Return a user without privileges that this process can become."""
    return os.geteuid() or NOBODY


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """Make the real process act as user and group ``uid``, without other groups."""
    if uid == os.geteuid():
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


@contextmanager
def as_other_user(arm: Arm) -> Iterator[Arm]:
    """Provide the same arm as a user without privileges; needs root."""
    if arm.is_simulated:
        yield _arm(Process(arm.os.disk, uid=NOBODY, gid=NOBODY), arm.top)
        return
    with acting_as(NOBODY):
        yield arm


def file_system_type(path: str) -> str:
    """Return the type of the file system that holds ``path``, from ``/proc/self/mounts``."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    inside = [(where, kind) for where, kind in mounts if os.path.commonpath([where, path]) == where]
    return max(inside, key=lambda mount: len(mount[0]))[1]
