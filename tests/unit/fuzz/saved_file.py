"""A small program of the engine's own tests, and its target: one file that is replaced atomically.

The program uses nothing but the calls of ``os``. A boot removes the temporary files of earlier
boots and syncs the directory, so that the content that it reads is durable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from oracles.marks import (
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    KILLED,
    POWER_CUT_LOST,
    STALE_TEMPORARY_SWEPT,
    TORN,
)
from oracles.shadow_file import ShadowFile
from oracles.violation import FalseAlarm, Garbage
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily
from powercut.fuzz.sample_texts import text
from powercut.fuzz.target import DiskTarget
from sim.disk.calls.process import Process

DIRECTORY: Final = "/data"
NAME: Final = "state.json"
PATH: Final = f"{DIRECTORY}/{NAME}"
TEMPORARY: Final = ".tmp"
"""Ends the name of a temporary file."""

Save = Callable[[Process, str, bytes], None]
"""Replaces the content of a path."""

# -- the program -------------------------------------------------------------------------


def save(process: Process, path: str, data: bytes) -> None:
    """Replace the content of ``path`` durably.

    After an ``OSError`` the old content is untouched, unless the sync of the directory failed.
    """
    process.replace(write_temporary(process, path, data), path)
    sync_directory(process, os.path.dirname(path))


def write_temporary(process: Process, path: str, data: bytes, *, sync: bool = True) -> str:
    """Write ``data`` to the temporary file beside ``path``; return its path."""
    temporary = f"{path}{TEMPORARY}"
    descriptor = process.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    try:
        write_all(process, descriptor, data)
        if sync:
            process.fsync(descriptor)
    finally:
        process.close(descriptor)
    return temporary


def write_all(process: Process, descriptor: int, data: bytes) -> None:
    """Write all of ``data``; one call may write less than it was given."""
    while data:
        written = process.write(descriptor, data)
        data = data[written:]


def sync_directory(process: Process, path: str) -> None:
    """Make the names in a directory durable."""
    descriptor = process.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        process.fsync(descriptor)
    finally:
        process.close(descriptor)


def content_of(process: Process, path: str) -> bytes | None:
    """Return the content of ``path``; None if it does not exist."""
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        parts: list[bytes] = []
        while part := process.read(descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        process.close(descriptor)


def prepare_directory(process: Process, path: str) -> int:
    """Create a directory, or remove its temporary files; return the number of these."""
    swept = 0
    try:
        process.mkdir(path)
    except FileExistsError:
        for name in process.listdir(path):
            if name.endswith(TEMPORARY):
                process.unlink(f"{path}/{name}")
                swept += 1
    sync_directory(process, "/")
    sync_directory(process, path)
    return swept


# -- the target --------------------------------------------------------------------------


class SavedFileTarget(DiskTarget):
    """One file and its shadow; ``write`` replaces the content."""

    refusals = (OSError,)
    families_left_out = MappingProxyType(
        {
            FaultFamily.CLOCK: "it reads no clock",
            FaultFamily.DELAYED_BARRIER_ERROR: "a file has one barrier, so no later one fails",
            FaultFamily.BIT_ROT: "the file has no checksum",
            FaultFamily.MISDIRECTED_WRITE: "the file has no checksum",
        }
    )
    expected_marks: Sequence[str] = (
        KILLED,
        POWER_CUT_LOST,
        TORN,
        IN_FLIGHT_KEPT,
        IN_FLIGHT_LOST,
        STALE_TEMPORARY_SWEPT,
    )

    def __init__(self, tag: str, save: Save) -> None:
        self.tag = tag
        self._save = save
        self._shadow: ShadowFile[bytes] = ShadowFile()
        self._written = 0
        self._process: Process

    def actions(self) -> Sequence[ActionKind]:
        return (
            ActionKind("write", 6, self._write, lambda choices: {"text": text(choices)}),
            ActionKind("read", 1, self._read),
        )

    def recover(self, host: Process) -> None:
        self._process = host
        if prepare_directory(host, DIRECTORY):
            self.marks.reach(STALE_TEMPORARY_SWEPT)

    def check_recovered(self) -> None:
        try:
            actual, names = content_of(self._process, PATH), self._process.listdir(DIRECTORY)
        except OSError:
            if not self.fault_plan:
                raise
            return
        doubtful = len(self._shadow.allowed) > 1
        happened = self._shadow.settle(actual, PATH)
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        if left := [name for name in names if name != NAME]:
            raise Garbage("files are left that are never read", names=left)

    def _write(self, arguments: Arguments) -> str:
        self._written += 1
        content = f"{self._written} {arguments['text']}".encode()
        self._shadow.begin(content)
        try:
            self._save(self._process, PATH, content)
        except OSError as refused:
            if not self.fault_plan:
                raise FalseAlarm(
                    "a write failed, and no fault is on", raised=repr(refused)
                ) from None
            return f"refused: {refused}"
        self._shadow.acknowledge()
        return "ack"

    def _read(self, _arguments: Arguments) -> str:
        try:
            actual = content_of(self._process, PATH)
        except OSError as refused:
            if not self.fault_plan:
                raise
            return f"refused: {refused}"
        self._shadow.check(actual, PATH)
        return f"{len(actual or b'')} bytes"


def saved_file() -> SavedFileTarget:
    return SavedFileTarget("saved-file", save)


def frequent_file() -> SavedFileTarget:
    """The same target, which is given twice as many steps in a campaign of several targets."""
    target = SavedFileTarget("frequent-file", save)
    target.turn_steps = 2 * DiskTarget.turn_steps
    return target
