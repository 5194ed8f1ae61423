"""Targets that miss two barriers."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oracles.violation import LostAck
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily
from powercut.fuzz.target import DiskTarget
from sim.disk.calls.process import Process
from tests.unit.fuzz.broken import save_without_directory_barrier
from tests.unit.fuzz.saved_file import content_of, sync_directory


class TwoFiles(DiskTarget):
    """Misses a barrier for each of two files; the oracle has one sentence for both losses."""

    families_left_out = dict.fromkeys(FaultFamily, "it misses barriers")

    def __init__(self) -> None:
        self._sizes = {"/log": 0, "/head": 0}
        self._process: Process

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("append", 1, self._append), ActionKind("publish", 1, self._publish)]

    def recover(self, host: Process) -> None:
        self._process = host

    def check_recovered(self) -> None:
        for path, acknowledged in self._sizes.items():
            self._sizes[path] = found = len(content_of(self._process, path) or b"")
            if found < acknowledged:
                raise LostAck("bytes are lost")

    def _append(self, _arguments: Arguments) -> str:
        """Append a byte, make the name durable; the content never."""
        file = self._process.open("/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._process.write(file, b"x")
        self._process.close(file)
        sync_directory(self._process, "/")
        self._sizes["/log"] += 1
        return "ack"

    def _publish(self, _arguments: Arguments) -> str:
        data = b"x" * (self._sizes["/head"] + 1)
        save_without_directory_barrier(self._process, "/head", data)
        self._sizes["/head"] += 1
        return "ack"


class NamesAndBytes(TwoFiles):
    """Loses names on posix only, and bytes on every file system."""

    def check_recovered(self) -> None:
        names = self._process.listdir("/")
        if any(size and path[1:] not in names for path, size in self._sizes.items()):
            raise LostAck("a name is lost")
        super().check_recovered()

    def _publish(self, _arguments: Arguments) -> str:
        file = self._process.open("/head", os.O_CREAT | os.O_WRONLY)
        self._process.write(file, b"x")
        self._process.fsync(file)
        self._process.close(file)
        self._sizes["/head"] = 1
        return "ack"


class Unsynced(TwoFiles):
    """Misses both barriers in one action: for the bytes, and on posix only for the name."""

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("append", 1, self._append)]

    def _append(self, _arguments: Arguments) -> str:
        file = self._process.open("/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._process.write(file, b"x")
        self._process.close(file)
        self._sizes["/log"] += 1
        return "ack"
