"""Event logs that lose lines: holes R1, R2, R3, R9 and R19.

Each takes the parts of our own log and puts one of them in wrongly. Where the hole is that
a reader passes over what it cannot read, the log is a ``ForgivingLog``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from json import JSONDecodeError

from crash_tests.mutants.careless_files import ForgottenBarriers
from crash_tests.targets.event_log import EventLogTarget, OpenLog
from oracles.violation import (
    Duplicated,
    FalseAlarm,
    LogGap,
    LostAck,
    Phantom,
    Reordered,
    Resurrected,
    UnreadableAfterCrash,
)
from powercut.fuzz.mutant import Mutant
from system.errors import BadSeal
from system.ports import Clock, FileSystem, Host, OpenMode
from system.storage.atomic_file import read_whole
from system.storage.event_log import EventLog
from system.storage.framing import FramedWriter, LineWriter, pending_path
from system.storage.line import Line, decode_line
from system.storage.log_file import LogFile
from system.storage.log_recovery import ExaminedLog, RecoveredLog
from system.storage.log_report import LogReport, PendingVerdict
from system.storage.log_scan import scan
from system.storage.pending_entry import read_pending_entry
from system.storage.pending_writer import END_OF_ENTRY, PendingWriter
from system.storage.transfer import append_all


class ForgivingLog(EventLog):
    """A log whose reader silently passes over every line that it cannot read."""

    def __init__(
        self,
        clock: Clock,
        session_id: str,
        recovered: RecoveredLog,
        file: LogFile,
        writer: LineWriter,
    ) -> None:
        super().__init__(clock, session_id, recovered, file, writer)
        self.recovered = tuple(self.lines())

    def lines(self) -> Iterator[Line]:
        for encoded in self._file.read().split(b"\n")[:-1]:
            try:
                yield decode_line(encoded, self.session_id, self.path)
            except BadSeal:
                continue


def recovered_log(host: Host, path: str, session_id: str) -> RecoveredLog:
    """Recover a log as the system does."""
    return ExaminedLog.read(host.files, host.ids, path, session_id, pending_path(path)).settle()


def framed_log(host: Host, session_id: str, recovered: RecoveredLog, file: LogFile) -> EventLog:
    """Open a recovered log with the framing ``framed`` and a forgiving reader."""
    return ForgivingLog(host.clock, session_id, recovered, file, FramedWriter(file))


def pending_log(
    host: Host, path: str, session_id: str, recovered: RecoveredLog, files: FileSystem
) -> EventLog:
    """Open a recovered log with the framing ``pending``, whose writer works on ``files``."""
    file = LogFile(host.files, path, recovered.size_bytes)
    writer: LineWriter = PendingWriter(files, file, pending_path(path))
    return ForgivingLog(host.clock, session_id, recovered, file, writer)


def without_barriers(files: FileSystem) -> FileSystem:
    """Return ``files`` without the barriers on any directory."""
    return ForgottenBarriers(files, lambda _path: True)


def _torn_pending_is_appended(host: Host, path: str, session_id: str) -> EventLog:
    """R1: a torn pending entry is appended to the log without being looked at."""
    pending = pending_path(path)
    entry = read_pending_entry(host.files, pending, session_id, 0)
    recovered = recovered_log(host, path, session_id)
    if entry.verdict is PendingVerdict.TORN:
        recovered = _appended(host.files, path, recovered, entry.content)
    return pending_log(host, path, session_id, recovered, host.files)


def _torn_tail_stays_without_pending(host: Host, path: str, session_id: str) -> EventLog:
    """R2: without a pending entry nothing is recovered; that entry's name has no barrier."""
    pending = pending_path(path)
    if host.files.kind(path) is None or host.files.kind(pending) is not None:
        recovered = recovered_log(host, path, session_id)
    else:
        content = read_whole(host.files, path)
        found = scan(content, session_id, path)
        recovered = RecoveredLog(
            found.lines, found.last_seq, len(content), LogReport(path, lines=len(found.good))
        )
    return pending_log(host, path, session_id, recovered, without_barriers(host.files))


def _stale_pending_is_appended(host: Host, path: str, session_id: str) -> EventLog:
    """R3: a pending entry is appended unless it is the last line; its name has no barrier."""
    pending = pending_path(path)
    entry = read_pending_entry(host.files, pending, session_id, 0)
    recovered = recovered_log(host, path, session_id)
    encoded = entry.content.removesuffix(END_OF_ENTRY)
    whole = entry.verdict in (PendingVerdict.REPLAYED, PendingVerdict.AHEAD)
    if whole and not read_whole(host.files, path).endswith(encoded):
        recovered = _appended(host.files, path, recovered, encoded)
    return pending_log(host, path, session_id, recovered, without_barriers(host.files))


def _encoding_of_lines_is_guessed(host: Host, path: str, session_id: str) -> EventLog:
    """R9: JSON takes a region of NULs for UTF-32, and what that raises ends the recovery."""
    if host.files.kind(path) is not None:
        for encoded in read_whole(host.files, path)[:-1].split(b"\n"):
            try:
                json.loads(encoded)
            except JSONDecodeError:
                continue
    recovered = ExaminedLog.read(
        host.files, host.ids, path, session_id, pending_path(path)
    ).settle()
    return framed_log(host, session_id, recovered, LogFile(host.files, path, recovered.size_bytes))


class UncutLogFile(LogFile):
    """A log file in which a partial line stays, for the next one to be written behind it."""

    def append(self, encoded: bytes) -> None:
        file = self._opened()
        try:
            append_all(file, encoded)
        finally:
            self._written_bytes = file.size()


def _partial_line_stays(host: Host, path: str, session_id: str) -> EventLog:
    """R19: after ENOSPC or a short write the next line lands on the line that was torn."""
    recovered = ExaminedLog.read(
        host.files, host.ids, path, session_id, pending_path(path)
    ).settle()
    file = UncutLogFile(host.files, path, recovered.size_bytes)
    return framed_log(host, session_id, recovered, file)


class RetryingLogFile(LogFile):
    """A log file whose failed barrier is taken for an append that just did not happen."""

    def commit(self) -> None:
        self._opened().fdatasync()
        self.kept_bytes = self._durable_bytes = self._written_bytes


def _failed_barrier_is_forgotten(host: Host, path: str, session_id: str) -> EventLog:
    """R19, its second half: a failed fsync leaves a line that is visible and never durable."""
    recovered = ExaminedLog.read(
        host.files, host.ids, path, session_id, pending_path(path)
    ).settle()
    file = RetryingLogFile(host.files, path, recovered.size_bytes)
    return framed_log(host, session_id, recovered, file)


def _appended(files: FileSystem, path: str, recovered: RecoveredLog, data: bytes) -> RecoveredLog:
    file = files.open(path, OpenMode.APPEND)
    try:
        append_all(file, data)
        file.fsync()
    finally:
        file.close()
    return recovered._replace(size_bytes=recovered.size_bytes + len(data))


def _mutant(title: str, tag: str, open_log: OpenLog, *properties: type[Exception]) -> Mutant:
    return Mutant(title, partial(EventLogTarget, tag, open_log), properties)


torn_pending_is_appended = _mutant(
    "a torn pending entry is appended unvalidated",
    "event-log-pending",
    _torn_pending_is_appended,
    LostAck,
    Resurrected,
    Duplicated,
    Phantom,
)
torn_tail_stays_without_pending = _mutant(
    "a torn tail stays when there is no pending entry",
    "event-log-pending",
    _torn_tail_stays_without_pending,
    FalseAlarm,
    LostAck,
    Reordered,
)
stale_pending_is_appended = _mutant(
    "a stale pending entry is appended again",
    "event-log-pending",
    _stale_pending_is_appended,
    Resurrected,
    Duplicated,
    Reordered,
)
encoding_of_lines_is_guessed = _mutant(
    "a region of NULs ends the recovery",
    "event-log-framed",
    _encoding_of_lines_is_guessed,
    UnreadableAfterCrash,
)
partial_line_stays = _mutant(
    "a partial line stays in a running log",
    "event-log-framed",
    _partial_line_stays,
    FalseAlarm,
    LostAck,
    LogGap,
)
failed_barrier_is_forgotten = _mutant(
    "a failed fsync is forgotten and the log goes on",
    "event-log-framed",
    _failed_barrier_is_forgotten,
    FalseAlarm,
    LostAck,
    LogGap,
)
