"""Targets that are broken on purpose, and one that is not."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crash_tests.targets.atomic_file import AtomicFileTarget, atomic_file
from powercut.fuzz.action import ActionKind
from powercut.fuzz.target import DiskTarget
from sim.disk.calls.process import Process
from system.ports import FileSystem, Ids, OpenMode
from system.storage.transfer import write_all


def write_without_directory_barrier(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Write, fsync, rename; the rename is never made durable."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    file = files.open(temporary, OpenMode.CREATE)
    write_all(file, data, 0)
    file.fsync()
    file.close()
    files.replace(temporary, path)


def write_without_file_barrier(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Write, rename, make the name durable; the content never."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    file = files.open(temporary, OpenMode.CREATE)
    write_all(file, data, 0)
    file.close()
    files.replace(temporary, path)
    files.sync_dir("data")


def write_in_place(files: FileSystem, path: str, data: bytes, _ids: Ids) -> None:
    """Write over the file, cut it, fsync it: torn for a while."""
    if files.kind(path) is None:
        files.open(path, OpenMode.CREATE).close()
    file = files.open(path, OpenMode.WRITE)
    write_all(file, data, 0)
    file.truncate(len(data))
    file.fsync()
    file.close()
    files.sync_dir("data")


def undurable() -> AtomicFileTarget:
    return AtomicFileTarget("undurable", write_without_directory_barrier)


def unsynced() -> AtomicFileTarget:
    return AtomicFileTarget("unsynced", write_without_file_barrier)


def in_place() -> AtomicFileTarget:
    return AtomicFileTarget("in-place", write_in_place)


class BootCounter(DiskTarget):
    """Counts its boots in a file, and does not declare that it does."""

    def actions(self) -> Sequence[ActionKind]:
        return (ActionKind("wait", 1, lambda _: "waited"),)

    def recover(self, host: Process) -> None:
        file = host.open("boots", os.O_RDWR | os.O_CREAT)
        host.pwrite(file, b"%d" % (1 + int(host.pread(file, 20, 0) or b"0")), 0)
        host.fsync(file)
        host.close(file)


def boot_counter() -> BootCounter:
    return BootCounter()


sound = atomic_file
