"""A failed sync of a segment, which the kernel reports to one caller only."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from system.errors import LogStopped
from system.host import real_host
from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import LogRecord
from system.recording.wal.segment import WalSegment
from tests.unit.system.faulty_files import CountingIds, FaultyFiles

PATH = "1.wal"


class SlowFiles(FaultyFiles):
    """Files whose first sync fails, and ends only when ``go`` is set."""

    def __init__(self, directory: Path) -> None:
        super().__init__(real_host(str(directory)).files)
        self.is_syncing, self.go = Event(), Event()
        self.syncs = 0

    def enter(self, call: str, path: str, data: bytes = b"", note: str = "") -> bytes:
        if call == "fdatasync":
            self.syncs += 1
            if self.syncs == 1:
                self.is_syncing.set()
                assert self.go.wait(60)
                raise OSError(errno.EIO, "Input/output error", path)
        return super().enter(call, path, data, note)


@pytest.fixture
def files(tmp_path: Path) -> SlowFiles:
    return SlowFiles(tmp_path)


@pytest.fixture
def segment(files: SlowFiles) -> Iterator[WalSegment]:
    segment = WalSegment.create(files, CountingIds(), PATH, 1, ())
    segment.append([LogRecord(EntryType.START, b'{"a":1}')], 0)
    yield segment
    segment.close()


def test_every_later_sync_fails(files: SlowFiles, segment: WalSegment) -> None:
    files.go.set()
    for _ in range(3):
        with pytest.raises(LogStopped, match="its barrier failed"):
            segment.sync()
    assert files.syncs == 1


def test_a_sync_that_begins_while_another_one_fails_fails_too(
    files: SlowFiles, segment: WalSegment
) -> None:
    with ThreadPoolExecutor() as threads:
        first = threads.submit(segment.sync)
        assert files.is_syncing.wait(60)
        second = threads.submit(segment.sync)
        # Without a lock, the second one ends here, and has proved nothing.
        with pytest.raises(TimeoutError):
            second.result(0.2)
        files.go.set()
        for each in (first, second):
            with pytest.raises(LogStopped, match="its barrier failed"):
                each.result(60)
    assert files.syncs == 1
