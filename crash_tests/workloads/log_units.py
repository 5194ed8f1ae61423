"""The logs of a recovery as recovery units: each is read and classified separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crash_tests.rig.host import simulated_files
from powercut.explorer.recovery_unit import recovery_unit
from sim.disk.calls.process import Process
from system.ports import FileSystem
from system.storage import log_recovery
from system.storage.log_recovery import classified
from system.storage.log_scan import Scan
from system.storage.pending_entry import PendingEntry
from system.storage.segments import SegmentText


@contextmanager
def log_units(process: Process) -> Iterator[None]:
    """Read each log that ``process`` recovers, with its pending entry, by a recovery unit."""

    def apart(
        files: FileSystem, path: str, session_id: str, numbers: Sequence[int], entry_path: str
    ) -> tuple[SegmentText, Scan, PendingEntry]:
        del files  # the unit has a process of its own
        return recovery_unit(process, _classified, path, session_id, tuple(numbers), entry_path)

    before = log_recovery.classified
    log_recovery.classified = apart
    try:
        yield
    finally:
        log_recovery.classified = before


def _classified(
    process: Process, path: str, session_id: str, numbers: Sequence[int], entry_path: str
) -> tuple[SegmentText, Scan, PendingEntry]:
    return classified(simulated_files(process), path, session_id, numbers, entry_path)
