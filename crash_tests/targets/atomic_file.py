"""One file that is replaced atomically, under crashes and faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from crash_tests.targets.system_target import SystemTarget
from oracles.marks import IN_FLIGHT_KEPT, IN_FLIGHT_LOST, STALE_TEMPORARY_SWEPT
from oracles.shadow_file import ShadowFile
from oracles.violation import FalseAlarm, Garbage
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.errors import StorageError
from system.ports import FileSystem, Host, Ids
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.durable_directory import make_durable_directory

DIRECTORY: Final = "data"
NAME: Final = "state.json"
PATH: Final = f"{DIRECTORY}/{NAME}"

WriteFile = Callable[[FileSystem, str, bytes, Ids], None]
"""Replaces a file durably: files, path, content, ids."""


class AtomicFileTarget(SystemTarget):
    """One file and its shadow; ``write`` replaces the file.

    Its recovery sweeps temporary files and syncs the directory, so that the content that a
    program reads at boot is durable.
    """

    families_left_out = MappingProxyType(
        {
            FaultFamily.CLOCK: "it reads no clock",
            FaultFamily.DELAYED_BARRIER_ERROR: "a file has one barrier, so no later one fails",
            FaultFamily.BIT_ROT: "a file has no checksum; its readers add one",
            FaultFamily.MISDIRECTED_WRITE: "a file has no checksum; its readers add one",
        }
    )

    def __init__(self, tag: str, write: WriteFile) -> None:
        self.tag = tag
        self._write_file = write
        self._shadow: ShadowFile[bytes] = ShadowFile()
        self._written = 0
        self._host: Host

    def actions(self) -> Sequence[ActionKind]:
        """Return write and read."""
        return (
            ActionKind("write", 6, self._write, self._propose_write),
            ActionKind("read", 1, self._read),
        )

    def recover(self, host: Host) -> None:
        """Create the directory, sweep it and sync it."""
        self._host = host
        make_durable_directory(host.files, DIRECTORY)
        if sweep_temporaries(host.files, DIRECTORY):
            self.marks.reach(STALE_TEMPORARY_SWEPT)
        host.files.sync_dir(DIRECTORY)

    def check_recovered(self) -> None:
        """Check the content of the file, and that no other file is left."""
        try:
            actual = self._content()
        except OSError:
            if not self.fault_plan:
                raise
            return
        doubtful = len(self._shadow.allowed) > 1
        happened = self._shadow.settle(actual, PATH)
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        for name in self._host.files.listdir(DIRECTORY):
            if name != NAME:
                raise Garbage("a file is left that is never read", name=name)

    def _propose_write(self, choices: Choices) -> Arguments:
        return {"text": text(choices)}

    def _write(self, arguments: Arguments) -> str:
        self._written += 1
        content = f"{self._written} {arguments['text']}".encode()
        self._shadow.begin(content)
        try:
            self._write_file(self._host.files, PATH, content, self._host.ids)
        except (OSError, StorageError) as refused:
            if not self.fault_plan:
                raise FalseAlarm(
                    "a write failed, and no fault is on", raised=repr(refused)
                ) from None
            return f"refused: {refused}"
        self._shadow.acknowledge()
        return "ack"

    def _read(self, _arguments: Arguments) -> str:
        try:
            actual = self._content()
        except OSError as refused:
            if not self.fault_plan:
                raise
            return f"refused: {refused}"
        self._shadow.check(actual, PATH)
        return f"{len(actual or b'')} bytes"

    def _content(self) -> bytes | None:
        try:
            return read_whole(self._host.files, PATH)
        except FileNotFoundError:
            return None


def atomic_file() -> AtomicFileTarget:
    """Return a target of ``write_atomic``."""
    return AtomicFileTarget("atomic-file", write_atomic)
