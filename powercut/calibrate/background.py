"""Work that the kernel may do by itself at any time, made to happen at a given moment.

============= =====================================================================
commit        a commit of the metadata, without file data that is not allocated yet
logsync       a commit that the fsync of another file causes
flush PATH    the data of a file is written, as by the flusher thread
part PATH O L some of the data of a file is written, from offset O on, L bytes
syncfs        everything is written
tick          the clock of time stamps moves on, so that the next change of a file changes them
============= =====================================================================
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import Final

from powercut.calibrate.file_system import Kind
from powercut.calibrate.program import Call
from powercut.calibrate.tree import HELPER_FILE
from powercut.fuse.mount import sync_file_system, write_back

_REALTIME_COARSE: Final = 5
"""``CLOCK_REALTIME_COARSE``, the clock of time stamps."""

_BTRFS_START_SYNC: Final = 0x80089418
_BTRFS_WAIT_SYNC: Final = 0x40089416


def do_background(root: str, kind: Kind, call: Call) -> None:
    """Do the work of a call named ``bg`` on the file system mounted at ``root``."""
    match list(call):
        case ["bg", "tick"]:
            wait_for_tick()
        case ["bg", "syncfs"]:
            sync_file_system(root)
        case ["bg", "commit"] if kind is Kind.BTRFS:
            _commit_btrfs(root)
        case ["bg", "commit" | "logsync"]:
            touch_helper(root)
        case ["bg", "flush", str(path)]:
            _write_back(f"{root}/{path}", 0, 0)
        case ["bg", "part", str(path), int(offset), int(length)]:
            _write_back(f"{root}/{path}", offset, length)
        case _:
            raise ValueError(f"no such background work: {call!r}")


def touch_helper(root: str) -> None:
    """Append to the helper file and fsync it."""
    descriptor = os.open(f"{root}/{HELPER_FILE}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, b"n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def wait_for_tick() -> None:
    """Wait until time stamps differ from those of changes before: 10 ms at most.

    Within a tick, the second change of a file does not change its time stamps, and then an fsync
    may have nothing to commit.
    """
    before = time.clock_gettime_ns(_REALTIME_COARSE)
    while time.clock_gettime_ns(_REALTIME_COARSE) == before:
        time.sleep(0.001)


def _commit_btrfs(root: str) -> None:
    descriptor = os.open(root, os.O_RDONLY)
    try:
        transaction = fcntl.ioctl(descriptor, _BTRFS_START_SYNC, bytes(8))
        fcntl.ioctl(descriptor, _BTRFS_WAIT_SYNC, transaction)
    finally:
        os.close(descriptor)


def _write_back(path: str, offset: int, length: int) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return  # A call before this one failed, so there is no such file.
    try:
        write_back(descriptor, offset, length)
    finally:
        os.close(descriptor)
