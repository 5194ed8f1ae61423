"""Targets that are broken on purpose, and one that is not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from crash_tests.targets.atomic_file import AtomicFileTarget, atomic_file
from oracles.violation import LostAck
from powercut.fuzz.action import ActionKind, Arguments
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


def increment(process: Process, path: str) -> int:
    """Add 1 to the number in a file, and return it; nothing is synced."""
    file = process.open(path, os.O_RDWR | os.O_CREAT)
    number = 1 + int(process.pread(file, 20, 0) or b"0")
    process.pwrite(file, b"%d" % number, 0)
    process.close(file)
    return number


class UnsyncedCounter(DiskTarget):
    """Acknowledges increments that a power cut may lose."""

    def __init__(self) -> None:
        self._acknowledged = 0
        self._process: Process

    def actions(self) -> Sequence[ActionKind]:
        return (ActionKind("increment", 1, self._increment),)

    def recover(self, host: Process) -> None:
        self._process = host

    def check_recovered(self) -> None:
        if self._acknowledged and "counter" not in self._process.listdir("/"):
            raise LostAck("the counter is gone", acknowledged=self._acknowledged)

    def _increment(self, _arguments: Arguments) -> str:
        try:
            self._acknowledged = increment(self._process, "/counter")
        except OSError as refused:
            return f"refused: {refused}"
        return "ack"


class BootCounter(UnsyncedCounter):
    """Counts its boots as well, and does not declare that it does."""

    def recover(self, host: Process) -> None:
        super().recover(host)
        increment(host, "/boots")
        host.sync()


class NeverReady(UnsyncedCounter):
    """Has an action that is never possible."""

    def actions(self) -> Sequence[ActionKind]:
        return [replace(kind, ready=lambda: False) for kind in super().actions()]


never_ready = NeverReady

sound = atomic_file
