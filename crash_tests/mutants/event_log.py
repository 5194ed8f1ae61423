"""Mutants of the event log: recoveries and appends that lose or repeat lines."""

from __future__ import annotations

from typing import Final

from oracles.violation import (
    Duplicated,
    FalseAlarm,
    LostAck,
    Resurrected,
    UnreadableAfterCrash,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch
from system.errors import LogDamaged

_FRAMED: Final = "event-log-framed"
_PENDING: Final = "event-log-pending"

entry_has_no_directory_barrier: Final = SourcePatch(
    "system.storage.pending_writer",
    "self._files.sync_dir(parent_of(self._path))",
    "",
)
"""Harmless alone: the log itself is recovered without the entry."""

torn_entry_is_appended = Mutant(
    "a torn pending entry is appended unvalidated",
    _PENDING,
    (FalseAlarm, LogDamaged, LostAck, Resurrected),
    (
        SourcePatch(
            "system.storage.pending_entry",
            """
            except BadSeal:
                return PendingEntry(PendingVerdict.TORN)
            """,
            """
            except BadSeal:
                return PendingEntry(PendingVerdict.TORN, encoded=content)
            """,
        ),
    ),
)

torn_tail_stays_without_entry = Mutant(
    "a torn tail stays when there is no pending entry",
    _PENDING,
    (FalseAlarm, LogDamaged, LostAck),
    (
        entry_has_no_directory_barrier,
        SourcePatch(
            "system.storage.log_recovery",
            """
            if self.text.size_bytes > size_bytes:
                file.truncate(size_bytes)
            """,
            """
            if self.entry.verdict is not PendingVerdict.ABSENT:
                file.truncate(size_bytes)
            """,
        ),
    ),
)

stale_entry_is_appended = Mutant(
    "a stale pending entry is appended again",
    _PENDING,
    (Duplicated, Resurrected),
    (
        entry_has_no_directory_barrier,
        SourcePatch(
            "system.storage.pending_entry",
            """
            if lines[-1].seq <= last_seq:
                return PendingEntry(PendingVerdict.STALE)
            """,
            """
            if lines[-1].seq == last_seq:
                return PendingEntry(PendingVerdict.STALE)
            if lines[-1].seq < last_seq:
                return PendingEntry(PendingVerdict.REPLAYED, tuple(lines), content[:-1])
            """,
        ),
    ),
)

encoding_of_lines_is_guessed = Mutant(
    "a region of NULs ends the recovery",
    _FRAMED,
    (UnreadableAfterCrash,),
    (
        SourcePatch(
            "system.storage.codec",
            "from json import JSONDecoder, JSONEncoder, encoder",
            "from json import JSONDecodeError, JSONDecoder, JSONEncoder, encoder, loads",
        ),
        SourcePatch(
            "system.storage.codec",
            'body = line[:-_SEAL_BYTES] + b"}"',
            """
            try:
                loads(line)
            except JSONDecodeError as error:
                raise BadSeal(str(error)) from None
            body = line[:-_SEAL_BYTES] + b"}"
            """,
        ),
    ),
)

partial_line_stays = Mutant(
    "a partial line stays in a running log",
    _FRAMED,
    (FalseAlarm, LogDamaged, LostAck, Resurrected),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            except OSError:
                self._cut(file)
                raise
            """,
            """
            except OSError:
                self._written_bytes = file.size()
                raise
            """,
        ),
    ),
)

failed_barrier_is_ignored = Mutant(
    "a failed fsync is ignored and the log goes on",
    _FRAMED,
    (Duplicated, FalseAlarm, LogDamaged, LostAck, Resurrected),
    (
        SourcePatch(
            "system.storage.log_file",
            """
            except OSError as error:
                raise self._stopped("its barrier failed", error) from error
            """,
            """
            except OSError:
                raise
            """,
        ),
    ),
)
