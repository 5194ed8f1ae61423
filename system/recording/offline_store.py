"""The records of a root that this process has not opened: read, never written.

The root may be in use. Records in files and the write-ahead log are read together, as recovery
reads them, so everything that was appended is found, durable or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from system.errors import StorageError
from system.ports import Host
from system.recording.records.record import ExecutionRecord
from system.recording.stores.file_store import FileExecutionStore, is_settled
from system.recording.wal.recovery import ReadLog, read_log

_ATTEMPTS: Final = 8


class OfflineRecords:
    """The readable part of an ``ExecutionStore``; ``log`` is the write-ahead log as it was read.

    Raises ``StorageError`` or ``OSError`` when the log cannot be read.
    """

    def __init__(self, host: Host) -> None:
        self.log: Final = _read(host)
        self._files = FileExecutionStore(host)
        # No execution of the log is in a pack up to the checkpoint.
        self._newer = FileExecutionStore(host, above=self.log.checkpoint.pack)

    def load(self, execution_id: str) -> ExecutionRecord:
        """Return a record; raises as ``ExecutionStore.load``."""
        execution = self.log.executions.get(execution_id)
        if execution is None:
            return self._files.load(execution_id)
        if is_settled(self._newer, execution):
            return self._newer.load(execution_id)
        return execution.record()

    def list_all(self) -> Iterator[str]:
        """Yield the ids of all records, sorted."""
        return iter(sorted({*self._files.list_all(), *self.log.executions.all()}))

    def unreadable_packs(self) -> Iterator[StorageError]:
        """Yield an error for each pack of records that is damaged or of a later version."""
        yield from self._files.packs.problems()


def _read(host: Host) -> ReadLog:
    """Read the log; the process that owns the root may remove files meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            return read_log(host.files, host.clock)
        except FileNotFoundError:
            continue
    return read_log(host.files, host.clock)
