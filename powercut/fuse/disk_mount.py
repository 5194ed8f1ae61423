"""Where and how a simulated disk is mounted on this machine.

As root, and in a user namespace of its own where the system allows that, powercut enters a mount
namespace: its mounts are seen by itself and by the programs that it starts, and the kernel
removes them when these have ended, also after ``kill -9``. Elsewhere ``fusermount3`` mounts, and
every process of the user sees the mount.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Final

from powercut.fuse.connection import FuseConnection
from powercut.fuse.device import FUSE
from powercut.fuse.disk_server import DiskServer
from powercut.fuse.messages import InitFlag
from powercut.fuse.mount import attach, detach, enter_mount_namespace, mount_error
from sim.errors import HarnessError

_OPTIONS: Final[dict[str, str | None]] = {"default_permissions": None, "allow_other": None}
_WANTED: Final = (InitFlag.DIRECT_IO_ALLOW_MMAP, InitFlag.KILLPRIV_V2)
_FUSERMOUNT: Final = "fusermount3"


class CannotMount(HarnessError):
    """No file system can be mounted through FUSE on this machine.

    Cause: the reason in the message. Cure: the remedy in the message.
    """


class MountWay(Enum):
    """How mounts are made."""

    ROOT = "as root, in a mount namespace"
    USER_NAMESPACE = "without root, in a user namespace"
    FUSERMOUNT = "without root, by fusermount3"

    @property
    def is_private(self) -> bool:
        """Whether this process may mount anything, unseen by other processes."""
        return self is not MountWay.FUSERMOUNT


def prepare_mounts() -> MountWay:
    """Enter a namespace for mounts if that is possible; return how mounts can be made.

    Raises ``CannotMount``.
    """
    try:
        os.close(FUSE.open())
    except OSError as error:
        raise CannotMount(
            f"{FUSE.path} cannot be opened ({error.strerror}): modprobe {FUSE.module}; "
            "in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN"
        ) from None
    is_root = os.geteuid() == 0
    try:
        enter_mount_namespace()
        reason = mount_error("fuse")
    except OSError as error:
        reason = error
    if reason is None:
        return MountWay.ROOT if is_root else MountWay.USER_NAMESPACE
    if not is_root and shutil.which(_FUSERMOUNT):
        return MountWay.FUSERMOUNT
    remedy = (
        "in a container, start it with --cap-add SYS_ADMIN"
        if is_root
        else f"install {_FUSERMOUNT} (package fuse3), or run it as root"
    )
    if reason.errno == errno.ENOSYS:
        remedy = "Linux 5.2 or later is needed"
    raise CannotMount(f"this process may not mount a file system ({reason.strerror}): {remedy}")


def mount_way() -> str:
    """Return how mounts can be made, or the sentence why not; this process does not change."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.write(writing, prepare_mounts().value.encode())
        except HarnessError as refusal:
            os.write(writing, str(refusal).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(process, 0)
    return text


@contextmanager
def mounted(server: DiskServer, path: str, way: MountWay) -> Iterator[FuseConnection]:
    """The connection of a mount at ``path``, an existing directory, until the context ends."""
    connection = FuseConnection(server.answers, _WANTED)
    try:
        if way.is_private:
            mounted_at = connection.mount(_OPTIONS)
            try:
                attach(mounted_at, path)
            finally:
                os.close(mounted_at)
        else:
            connection.adopt(_by_fusermount(path))
        try:
            yield connection
        finally:
            _unmount(path, way)
    finally:
        connection.close()


def _unmount(path: str, way: MountWay) -> None:
    if way.is_private:
        with suppress(OSError):  # the program itself unmounted it
            detach(path)
        return
    subprocess.run([_FUSERMOUNT, "-u", "-z", path], check=False, capture_output=True)


def _by_fusermount(path: str) -> int:
    """Return the descriptor of a connection that ``fusermount3`` mounted at ``path``."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [_FUSERMOUNT, "-o", "default_permissions,nosuid,nodev,fsname=powercut", "--", path],
            env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            check=False,
            capture_output=True,
        )
        if done.returncode:
            reason = " ".join(done.stderr.decode(errors="replace").split())
            raise CannotMount(f"{_FUSERMOUNT} cannot mount: {reason}")
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    # If a program held it, calls on the mount would hang after a kill -9 of powercut.
    os.set_inheritable(descriptors[0], False)
    os.set_blocking(descriptors[0], False)
    return descriptors[0]
