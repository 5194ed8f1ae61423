"""Mutants of a running log: lines that count as durable too early, or twice, or not at all."""

from __future__ import annotations

from oracles.violation import (
    Duplicated,
    FalseAlarm,
    LogGap,
    LostAck,
    Phantom,
    Resurrected,
    SilentEmpty,
    TornRecord,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch
from system.errors import LogDamaged

short_append_is_a_whole_one = Mutant(
    "an append of which the disk took a part counts as a whole one",
    "event-log-framed",
    (FalseAlarm, LogDamaged, LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            if (taken := file.append(encoded)) < len(encoded):
                append_remainder(file, encoded, taken)
            """,
            "file.append(encoded)",
        ),
    ),
)

append_has_no_barrier = Mutant(
    "a group of lines is acknowledged without a barrier",
    "event-log-framed",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            self.append(encoded)
            self.commit()
            """,
            """
            self.append(encoded)
            self.kept_bytes = self._written_bytes
            """,
        ),
    ),
)

parked_lines_are_not_synced = Mutant(
    "a log is parked without a barrier for its unsynced lines",
    "event-log-framed",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            if self._durable_bytes != self._written_bytes:
                self.commit()
            """,
            "",
        ),
    ),
)

unsynced_line_counts_as_durable = Mutant(
    "a line without a barrier counts as durable for the lines after it",
    "event-log-framed",
    (FalseAlarm, LogGap, LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.event_log",
            "return self._write(events, self._writer.append_unsynced)",
            """
            lines = self._write(events, self._writer.append_unsynced)
            self._durable_seq = self.last_seq
            return lines
            """,
        ),
    ),
)

refused_append_is_counted = Mutant(
    "the numbers of lines that the disk has refused are not used again",
    "event-log-framed",
    (FalseAlarm, LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.event_log",
            """
            self._stopped = None
            self.last_seq += len(lines)
            self._size_bytes += len(encoded)
            """,
            """
            self._stopped = None
            self._size_bytes += len(encoded)
            """,
        ),
        SourcePatch(
            "system.storage.event_log",
            "durable_seq, last_seq = self._durable_seq, self.last_seq",
            """
            durable_seq, last_seq = self._durable_seq, self.last_seq
            self.last_seq += len(events)
            """,
        ),
    ),
)

failed_append_stops_the_log = Mutant(
    "a log takes nothing more after an append that failed without a trace",
    "event-log-framed",
    (FalseAlarm,),
    (
        SourcePatch(
            "system.storage.event_log",
            """
            except OSError as error:
                self._stopped = None
                raise_if_full(self.path, error)
                raise
            """,
            """
            except OSError as error:
                raise_if_full(self.path, error)
                raise
            """,
        ),
    ),
)

partial_line_is_cut_without_a_barrier = Mutant(
    "a partial line is cut off without a barrier",
    "event-log-framed",
    (FalseAlarm, LostAck, Resurrected, SilentEmpty),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            file.truncate(self._written_bytes)
            file.fsync()
            """,
            "file.truncate(self._written_bytes)",
        ),
    ),
)

entry_lacks_the_unsynced_lines = Mutant(
    "a pending entry leaves out the lines that wait for the same barrier",
    "event-log-pending",
    (FalseAlarm, LogGap, LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.pending_writer",
            "self._announce(self._unsynced + encoded + END_OF_ENTRY)",
            "self._announce(encoded + END_OF_ENTRY)",
        ),
    ),
)

failed_entry_is_not_retracted = Mutant(
    "the entry of a failed append is unlinked instead of overwritten",
    "event-log-pending",
    (Duplicated, Phantom, Resurrected),
    (
        SourcePatch(
            "system.storage.pending_writer",
            """
            except OSError:
                self._retract()
                raise
            """,
            """
            except OSError:
                self._remove()
                raise
            """,
        ),
    ),
)

announced_line_is_acknowledged = Mutant(
    "a line is acknowledged when its entry is durable, and the entry is removed at once",
    "event-log-pending",
    (LostAck, SilentEmpty, TornRecord),
    (
        SourcePatch(
            "system.storage.pending_writer",
            """
            self._file.commit()
            self._unsynced = b""
            self._remove()
            """,
            """
            self._unsynced = b""
            self._remove()
            """,
        ),
    ),
)
