"""Targets that are broken on purpose, and two that are not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from oracles.violation import LostAck
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.target import DiskTarget
from sim.disk.calls.process import Process
from tests.unit.fuzz.saved_file import (
    SavedFileTarget,
    saved_file,
    sync_directory,
    write_all,
    write_temporary,
)


def save_without_directory_barrier(process: Process, path: str, data: bytes) -> None:
    """Write, fsync, rename; the rename is never made durable."""
    process.replace(write_temporary(process, path, data), path)


def save_without_file_barrier(process: Process, path: str, data: bytes) -> None:
    """Write, rename, make the name durable; the content never."""
    process.replace(write_temporary(process, path, data, sync=False), path)
    sync_directory(process, os.path.dirname(path))


def save_without_barriers(process: Process, path: str, data: bytes) -> None:
    """Write, rename."""
    process.replace(write_temporary(process, path, data, sync=False), path)


def save_in_place(process: Process, path: str, data: bytes) -> None:
    """Write over the file, cut it, fsync it: torn for a while."""
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    write_all(process, descriptor, data)
    process.ftruncate(descriptor, len(data))
    process.fsync(descriptor)
    process.close(descriptor)
    sync_directory(process, os.path.dirname(path))


def undurable() -> SavedFileTarget:
    return SavedFileTarget("undurable", save_without_directory_barrier)


def unsynced() -> SavedFileTarget:
    return SavedFileTarget("unsynced", save_without_file_barrier)


def careless() -> SavedFileTarget:
    return SavedFileTarget("saved-file", save_without_barriers)


def in_place() -> SavedFileTarget:
    return SavedFileTarget("in-place", save_in_place)


def raising() -> SavedFileTarget:
    """A program that raises an exception of its own."""

    def divide(_process: Process, _path: str, _data: bytes) -> None:
        raise ZeroDivisionError("the program cannot count")

    return SavedFileTarget("saved-file", divide)


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


class CrashFree(UnsyncedCounter):
    """Is never crashed, so that it can lose nothing."""

    crash_free = True


class Idle(UnsyncedCounter):
    """Has only an action that does nothing to the disk."""

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("wait", 1, lambda _arguments: "waited")]


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

sound = saved_file
