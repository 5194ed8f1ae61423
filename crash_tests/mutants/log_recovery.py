"""Mutants of a log's recovery: an end that is cut wrongly, or repaired without a barrier."""

from __future__ import annotations

from crash_tests.mutants.folders import SYSTEM_TESTS
from oracles.violation import (
    Duplicated,
    FalseAlarm,
    Garbage,
    LogGap,
    LostAck,
    NotIdempotent,
    Phantom,
    Resurrected,
    SilentEmpty,
    UnreadableAfterCrash,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_FILE_IS_SYNCED = SourcePatch(
    "system.storage.log_recovery",
    "file.fsync()",
    "",
)

recovered_lines_are_not_synced = Mutant(
    "the lines that a recovery returns are not synced",
    "event-log-framed",
    (LostAck, Resurrected, SilentEmpty),
    (_FILE_IS_SYNCED,),
)

lines_of_a_failed_barrier_are_trusted = Mutant(
    "recovery syncs the end of a log and does not write it again",
    "event-log-framed",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.log_recovery",
            """
            start, end = found.good[found.unproven][0], found.good[-1][1]
            tail = content[start:end] + b"\\n" + replay
            """,
            """
            start = found.good[-1][1]
            tail = b"\\n" + replay
            """,
        ),
    ),
)

pages_of_a_failed_append_are_kept = Mutant(
    "recovery writes again to blocks that a failed append has left unwritten",
    "event-log-framed",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.host",
            "self._calls.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)",
            "pass",
        ),
    ),
)

replayed_entry_repeats_a_line = Mutant(
    "an entry is replayed from the last line that the log has",
    "event-log-pending",
    (Duplicated, FalseAlarm),
    (
        SourcePatch(
            "system.storage.pending_entry",
            "known = last_seq + 1 - lines[0].seq",
            "known = max(0, last_seq - lines[0].seq)",
        ),
    ),
)

replayed_entry_loses_its_last_line = Mutant(
    "the last line of an entry is not replayed",
    "event-log-pending",
    (FalseAlarm, LostAck, SilentEmpty, UnreadableAfterCrash),
    (
        SourcePatch(
            "system.storage.pending_entry",
            'encoded = b"".join(content.splitlines(keepends=True)[known:-1])',
            'encoded = b"".join(content.splitlines(keepends=True)[known:-2])',
        ),
    ),
)

removed_entry_returns = Mutant(
    "the removal of an entry by a recovery is not synced",
    "event-log-pending",
    (Duplicated, Phantom, Resurrected),
    (
        SourcePatch(
            "system.storage.log_recovery",
            """
            self.files.unlink(self.pending_path)
            # A torn entry may still be complete on the platter. It must not reappear as the
            # next line after recovery has returned a log without it.
            self.files.sync_dir(parent_of(self.pending_path))
            return damaged
            """,
            """
            self.files.unlink(self.pending_path)
            return damaged
            """,
        ),
    ),
)


log_temporaries_are_not_swept = Mutant(
    "temporary files of an interrupted repair are not swept",
    "event-log-framed",
    (Garbage, NotIdempotent),
    (
        SourcePatch(
            "system.storage.log_recovery",
            'swept = sweep_temporaries(files, directory, name.removesuffix(".jsonl"), names)',
            'swept = sweep_temporaries(files, directory, "session.json", names)',
        ),
    ),
)

torn_tail_is_damage = Mutant(
    "a torn line is reported as damage",
    patches=(
        SourcePatch(
            "system.storage.log_scan",
            "return len(tail) < SHORTEST_BYTES or (tail.startswith(FIRST_BYTES) and is_text(tail))",
            "return len(tail) < SHORTEST_BYTES",
        ),
    ),
    tests=(f"{SYSTEM_TESTS}/test_log_scan.py::test_the_beginning_of_a_line_is_torn",),
)

group_goes_on_behind_a_gap = Mutant(
    "the lines behind the first lost line of a group are kept",
    "event-log-framed",
    (FalseAlarm, LogGap),
    (
        SourcePatch(
            "system.storage.gaps",
            "if proof < entries[gap.position].seq - 1:",
            "if proof < entries[gap.position].seq - 2:",
        ),
    ),
)

quarantine_follows_the_repair = Mutant(
    "damaged bytes are put aside after they were cut off",
    patches=(
        SourcePatch(
            "system.storage.log_recovery",
            """
            damaged = self._put_aside(content, found)
            is_rewritten = found.has_damaged_middle or self.text.before
            repair = self._rewrite if is_rewritten else self._make_whole
            size_bytes = repair(content, found, entry.encoded)
            """,
            """
            is_rewritten = found.has_damaged_middle or self.text.before
            repair = self._rewrite if is_rewritten else self._make_whole
            size_bytes = repair(content, found, entry.encoded)
            damaged = self._put_aside(content, found)
            """,
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_log_recovery.py"
            "::test_damaged_bytes_are_durable_aside_before_the_log_is_changed"
        ),
    ),
)

line_behind_lost_ones_is_cut = Mutant(
    "the first line behind lost ones does not say that these were durable",
    patches=(
        SourcePatch(
            "system.storage.event_log",
            "self._durable_seq = max(self._durable_seq, seq)",
            "",
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_event_log.py"
            "::test_a_line_behind_lost_ones_is_kept_and_the_lost_ones_are_reported"
            "[Framing.FRAMED]"
        ),
    ),
)
