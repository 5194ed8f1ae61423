"""The records of a root that this process has not opened: read, never written.

The root may be in use. Records in files and the write-ahead log are read together, as recovery
reads them, so everything that was appended is found, durable or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from system.errors import StorageError
from system.ports import Host
from system.recording.records.errors import (
    PackCorruptedError,
    RecordCorruptedError,
    RecordNotFoundError,
)
from system.recording.records.execution_id import is_execution_id
from system.recording.records.record import ExecutionRecord
from system.recording.stores.file_store import FileExecutionStore, is_settled
from system.recording.wal.checkpoint import CHECKPOINT, read_checkpoint
from system.recording.wal.format import DIRECTORY
from system.recording.wal.logged_executions import sound_record
from system.recording.wal.recovery import ReadLog, read_log
from system.recording.wal.report import missing_text

_ATTEMPTS: Final = 8


class OfflineRecords:
    """The readable part of an ``ExecutionStore``; ``log`` is the write-ahead log as it was read.

    ``missing_paths`` are files and directories that existed; they may have had any record.
    Raises ``StorageError`` or ``OSError`` when the log cannot be read.
    """

    def __init__(self, host: Host) -> None:
        self.log: Final = _read(host)
        self.missing_paths: Final = list(self.log.missing_paths)
        self._files = FileExecutionStore(host)
        # No execution of the log is in a pack up to the checkpoint.
        self._newer = FileExecutionStore(host, above=self.log.checkpoint.pack)
        for store in (self._files, self._newer):
            store.packs.skip_refused()

    def load(self, execution_id: str) -> ExecutionRecord:
        """Return a record; raises as ``ExecutionStore.load``."""
        if not is_execution_id(execution_id):
            raise RecordNotFoundError(self._files.base_path, execution_id)
        execution = self.log.executions.get(execution_id)
        if execution is None:
            return self._load_file(execution_id)
        if is_settled(self._newer, execution):
            return self._newer.load(execution_id)
        return sound_record(execution)

    def _load_file(self, execution_id: str) -> ExecutionRecord:
        """Load a record that the log does not have; raises as ``load``."""
        try:
            return self._files.load(execution_id)
        except RecordNotFoundError as missing:
            if execution_id in self.log.executions.headless:
                problem = f"the log has no start of execution {execution_id}"
                raise RecordCorruptedError(DIRECTORY, [problem]) from missing
            for path in self.missing_paths:
                problem = f"it is missing, and may have had execution {execution_id}"
                raise PackCorruptedError(path, [problem]) from missing
            raise

    def add_missing(self, path: str, reason: str) -> None:
        """Report a missing file of which only the logs of sessions show that it existed."""
        self.missing_paths.append(path)
        self.log.report.findings.append(f"{path}: {reason}")

    def list_all(self) -> Iterator[str]:
        """Yield the ids of all records, sorted; of some, the log has lost the start."""
        executions = self.log.executions
        return iter(sorted({*self._files.list_all(), *executions.all(), *executions.headless}))

    def is_running(self, _execution_id: str) -> bool:
        """Return False: an execution can be open in another process only."""
        return False

    def log_problems(self) -> Iterator[str]:
        """Yield a sentence for each damage of the log, which may hide executions."""
        for path, span, data in self.log.bad:
            yield (
                f"{path}: {len(data)} damaged bytes at offset {span.start}: {span.reason}; the next"
                " recovery puts them aside, and serves the other executions"
            )
        if missing := self.log.report.missing:
            yield missing_text(missing)
        yield from self.log.report.findings

    def foreign_files(self) -> list[str]:
        """Return a sentence for each file that is no part of the log, and no damage."""
        return self.log.report.foreign

    def unreadable_packs(self) -> Iterator[StorageError]:
        """Yield an error for each pack of records that is damaged, refused or newer."""
        yield from self._files.packs.problems()


def _read(host: Host) -> ReadLog:
    """Read the log; the process that owns the root may remove files meanwhile.

    Its next checkpoint does so, and what was read before it does not agree with the files that are
    left.
    """
    for _ in range(_ATTEMPTS):
        try:
            log = read_log(host.files, host.clock)
        except FileNotFoundError:
            continue
        if read_checkpoint(host.files, CHECKPOINT) == log.checkpoint:
            return log
    return read_log(host.files, host.clock)
