"""Mutants of the session store: recoveries and creations that lose sessions."""

from __future__ import annotations

from oracles.violation import LostAck, NotContained, SilentEmpty, UnreadableAfterCrash
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

one_bad_record_stops_all = Mutant(
    "one unreadable session record stops the recovery of all",
    "session-store",
    (NotContained, UnreadableAfterCrash),
    (
        SourcePatch(
            "system.sessions.session_store",
            """
            except SessionRecordDamaged as error:
                return self._put_aside(session_id, error)
            """,
            """
            except SessionRecordDamaged:
                raise
            """,
        ),
    ),
)

new_directory_has_no_barrier = Mutant(
    "the entry of a new session's directory is never made durable",
    "session-store",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.sessions.session_store",
            """
            self._files.sync_dir(self.directory)
            self._write(record.session_id, encoded)
            """,
            """
            self._write(record.session_id, encoded)
            """,
        ),
        SourcePatch(
            "system.storage.log_recovery",
            "make_durable_directory(files, directory)",
            """
            if files.kind(directory) is None:
                make_durable_directory(files, directory)
            """,
        ),
    ),
)
