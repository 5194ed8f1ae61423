"""Mutants of the write-ahead log of the recording (docs/planted-bugs.md)."""

from __future__ import annotations

from typing import Final

from crash_tests.mutants.folders import RECORDING_TESTS
from oracles.recording.violations import BrokenLog, UnreportedDamage
from oracles.violation import FalseAlarm, LostAck, Phantom, SilentEmpty, UnreadableAfterCrash
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET: Final = "recording"

numbers_begin_again = Mutant(
    "a log that is opened again numbers its entries from 1",
    _TARGET,
    (BrokenLog, LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.recording.wal.log",
            "segment = WalSegment.create(files, self._host.ids, path, self.last + 1, directories)",
            "segment = WalSegment.create(files, self._host.ids, path, 1, directories)",
        ),
    ),
)

torn_end_stops_the_recovery = Mutant(
    "a torn end of the log stops the recovery",
    _TARGET,
    (UnreadableAfterCrash, ValueError),
    (
        SourcePatch(
            "system.recording.wal.recovery",
            "report.torn_bytes += segment.torn_bytes",
            """
            if segment.torn_bytes:
                raise ValueError("the chain of the log is broken")
            """,
        ),
    ),
)

failed_barrier_stops_the_log = Mutant(
    "a failed barrier stops the log for ever",
    _TARGET,
    (FalseAlarm,),
    (
        SourcePatch(
            "system.recording.wal.log",
            """
            self._finish_if_full()
            if self._segment is None:
                self._segment = self._new_segment()
            """,
            """
            if self.doubtful.last:
                raise OSError(5, "the log has stopped")
            self._finish_if_full()
            if self._segment is None:
                self._segment = self._new_segment()
            """,
        ),
    ),
)

second_boot_is_refused = Mutant(
    "a log that goes on behind a checkpoint stops the recovery",
    _TARGET,
    (UnreadableAfterCrash,),
    (
        SourcePatch(
            "system.recording.wal.recovery",
            "segments, report = scan_segments(contents, settled), self.report",
            """
            segments, report = scan_segments(contents, settled), self.report
            if settled and segments:
                raise ValueError("the chain of the log is broken")
            """,
        ),
    ),
)

zeros_end_the_log = Mutant(
    "bytes of zero end the log, whatever is behind them",
    _TARGET,
    (UnreportedDamage,),
    (
        SourcePatch(
            "system.recording.wal.scan",
            "series = read_series(self.content, offset, seed)",
            """
            if not any(self.content[offset : offset + 17]):
                return None
            series = read_series(self.content, offset, seed)
            """,
        ),
    ),
)

stale_entries_are_valid = Mutant(
    "segments have no salt, so that stale entries of an earlier lifetime are valid",
    _TARGET,
    (Phantom,),
    (
        SourcePatch(
            "system.recording.wal.segment",
            "header = SegmentHeader(first, int(ids.random_hex(_SALT_DIGITS), 16))",
            "header = SegmentHeader(first, 0)",
        ),
    ),
)

response_outlives_its_start = Mutant(
    "a response counts as durable although a failed barrier may have lost the start before it",
    patches=(
        SourcePatch(
            "system.recording.wal.recording",
            "if execution.is_finished and execution.start_entry in self.log.doubtful:",
            "if False:",
        ),
    ),
    tests=(
        (
            f"{RECORDING_TESTS}/test_failed_barriers.py"
            "::test_a_response_is_durable_although_the_log_may_have_lost_its_start[finalize]"
        ),
    ),
)
