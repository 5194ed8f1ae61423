"""A recording on a directory whose calls can be made to fail, for the tests of the log."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

import pytest

from system.host import real_host
from system.ports import Host
from system.recording.open_recording import open_recording
from system.recording.records.errors import BarrierFailed
from system.recording.records.record import ExecutionRecord
from system.recording.wal.recording import WalRecording
from system.recording.wal.recovery import ReadLog
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, record_events
from tests.unit.system.faulty_files import FaultyHost

SEGMENT: Final = "00000001.wal"


class Bench:
    """A recording on a directory whose calls can be made to fail."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        host = real_host(str(root))
        self.root = root
        self.here = FaultyHost.of(str(root), host.files, host.database, host.workers)
        self.host: Host = self.here.host
        self.recording: WalRecording
        self.store: WalExecutionStore
        self.log: ReadLog

    async def open(self, segment_bytes: int = 1 << 20) -> None:
        self.recording, self.log = await open_recording(self.host, segment_bytes=segment_bytes)
        self.store = WalExecutionStore(self.recording, self.host.clock)

    def recorder(self, sample_rate: float = 1.0) -> WalExecutionRecorder:
        return WalExecutionRecorder(self.host, self.recording, sample_rate)

    def started(self, events: int = 0) -> tuple[WalExecutionRecorder, str]:
        recorder = self.recorder()
        execution_id = recorder.start(ENVELOPE)
        record_events(recorder, EVENTS[:events])
        return recorder, execution_id

    async def finished(self) -> ExecutionRecord:
        recorder, _ = self.started(4)
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        return record

    async def finish_without_barrier(self) -> str:
        """End an execution whose barrier fails; return its id."""
        recorder, execution_id = self.started(4)
        self.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        with pytest.raises(BarrierFailed):
            await recorder.finalize(RESPONSE)
        return execution_id

    def count(self, call: str) -> int:
        return sum(each.startswith(call) for each in self.here.files.calls)

    def names(self, directory: str = "") -> list[str]:
        return self.here.names(directory)
