"""Opening the recording of a root without a runtime: recovery, then a new log."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from posixpath import join

from system.errors import StorageError
from system.ports import FileKind, Host
from system.recording.executions.execution import Execution
from system.recording.executions.log_record_list import MOST_BYTES
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.stores.file_store import FileExecutionStore, is_settled
from system.recording.wal.checkpoint import CHECKPOINT
from system.recording.wal.format import DIRECTORY
from system.recording.wal.log import RECORDS, SEGMENT_BYTES, WriteAheadLog
from system.recording.wal.recording import FoundPacks, WalRecording
from system.recording.wal.recovery import (
    ReadLog,
    make_log_durable,
    put_bad_bytes_aside,
    read_log,
    sweep_recording,
)
from system.storage.atomic_file import sweep_temporaries


def resume_recording(
    host: Host,
    log: ReadLog,
    root: str = "",
    segment_bytes: int = SEGMENT_BYTES,
    running: Collection[str] = (),
    most_bytes: int = MOST_BYTES,
) -> WalRecording:
    """Return the recording that continues a log that was read.

    The executions of the log wait for a checkpoint, except those whose record a log cannot
    change, and those with an id in ``running``, which stay open unless they were invalidated.
    Damaged ones are reported, and so are files in the place of their records that are damaged, or
    have another execution; these are put aside. Raises ``StorageError`` or ``OSError``.
    """
    executions, files = log.executions.all(), FileExecutionStore(host, join(root, RECORDS))
    # A settled record needs none of the entries whose barrier has failed.
    log.report.corrupted += (
        each for each in log.executions.corrupted() if each in executions or not files.has(each)
    )
    for path in log.superfluous:
        with suppress(OSError):
            host.files.unlink(path)
    segments = tuple((segment.path, segment.last) for segment in log.segments)
    appended = WriteAheadLog(host, root, log.last, log.number, segments, segment_bytes)
    recording = WalRecording(
        host, appended, root, most_bytes,
        FoundPacks(log.snapshots, log.pack, log.is_checkpoint_wrong),
    )  # fmt: skip
    # None of them is in a pack up to the checkpoint.
    newer = FileExecutionStore(host, join(root, RECORDS), above=log.checkpoint.pack)
    recording.running.update(
        {key: executions[key] for key in running if not _is_invalidated(newer, key)}
    )
    recording.resume(
        {
            key: execution
            for key, execution in executions.items()
            if key not in running and not _is_settled(newer, execution, log.report.findings)
        }
    )
    return recording


def _is_invalidated(store: FileExecutionStore, execution_id: str) -> bool:
    """Return whether a record of the store was invalidated, so that nothing may continue it."""
    try:
        return store.load(execution_id).header.invalidation is not None
    except StorageError:
        return False


def _is_settled(store: FileExecutionStore, execution: Execution, findings: list[str]) -> bool:
    """Return whether the record is settled; put wrong files aside, and add them to the report."""
    while True:
        try:
            return is_settled(store, execution)
        except RecordCorruptedError:
            wrong = "damaged record"
        except ForeignRecordFile:
            wrong = "record of another execution"
        aside = store.put_file_aside(execution.execution_id)
        findings.append(
            f"{aside}: this {wrong} was put aside, and that of {execution.execution_id} is made"
            " again from the log; if it was invalidated, it must be invalidated again"
        )


async def open_recording(
    host: Host,
    root: str = "",
    segment_bytes: int = SEGMENT_BYTES,
    most_bytes: int = MOST_BYTES,
) -> tuple[WalRecording, ReadLog]:
    """Recover the recording below ``root``, and open it; return it with the log that was found.

    Executions that were running are in the store as ``execution_incomplete``. For callers
    without a runtime, which does the same in its passes, and completes records from its own logs:
    its root is opened by it alone. No lock is taken, so the caller sees to it that nothing else
    uses the directory. When ``is_checkpoint_due``, the caller calls ``checkpoint``; until then
    finished executions are in memory. Raises ``StorageError`` or ``OSError``.
    """
    swept = list[str]()
    if host.files.kind(join(root, DIRECTORY)) is FileKind.DIRECTORY:
        # The process that made the directories may have been killed before it synced them.
        host.files.sync_dir(root)
        swept += sweep_temporaries(host.files, root, CHECKPOINT)
    swept += sweep_recording(host.files, root)
    log = read_log(host.files, host.clock, root)
    log.report.swept += swept
    put_bad_bytes_aside(host.files, host.ids, log)
    make_log_durable(host.files, log, root)
    recording = resume_recording(host, log, root, segment_bytes, most_bytes=most_bytes)
    if log.is_settled:
        recording.files.settle()
    else:
        # It makes the names of all records durable too.
        await recording.checkpoint()
    return recording, log
