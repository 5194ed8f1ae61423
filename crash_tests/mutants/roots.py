"""Mutants of the root and its records: epochs, locks and sessions that a crash leaves half made."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS, SYSTEM_TESTS
from oracles.violation import (
    FalseAlarm,
    Garbage,
    InvalidState,
    LostAck,
    TornRecord,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_REPLACE_RECORD = "self._write(record.session_id, encode_record(record))"

epoch_is_not_synced = Mutant(
    "the boot epoch is written without a sync",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.root",
            "lock.fsync()",
            "",
        ),
    ),
)

epoch_is_overwritten = Mutant(
    "the boot epoch is written over the last one",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.root",
            "write_all(lock, entry.ljust(_SLOT_BYTES), (1 - slot) * _SLOT_BYTES)",
            "write_all(lock, entry.ljust(_SLOT_BYTES), 0)",
        ),
    ),
)

older_epoch_counts = Mutant(
    "the epoch of the second slot counts, also when it is the older one",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.root",
            "if isinstance(found, int) and found > epoch:",
            "if isinstance(found, int):",
        ),
    ),
)

interrupted_first_boot_is_refused = Mutant(
    "a directory in which the first boot was interrupted is refused",
    patches=(
        SourcePatch(
            "system.root",
            r'_UNFINISHED: Final = re.compile(r"runtime\.lock|root\.json\.tmp\.[0-9a-f]{8}")',
            r'_UNFINISHED: Final = re.compile(r"runtime\.lock")',
        ),
    ),
    tests=(
        f"{AGENT_TESTS}/test_root.py::test_what_an_interrupted_first_boot_leaves_becomes_a_root",
    ),
)

record_is_overwritten = Mutant(
    "a session's record is overwritten in place",
    "session-store",
    (FalseAlarm, LostAck, TornRecord),
    (
        SourcePatch(
            "system.sessions.session_store",
            _REPLACE_RECORD,
            """
            file = self._files.open(self.path_of(record.session_id), OpenMode.WRITE)
            try:
                encoded = encode_record(record)
                write_all(file, encoded, 0)
                file.truncate(len(encoded))
                file.fsync()
            finally:
                file.close()
            """,
        ),
        SourcePatch(
            "system.sessions.session_store",
            "from system.ports import Host",
            """
            from system.ports import Host, OpenMode
            from system.storage.transfer import write_all
            """,
        ),
    ),
)

blob_is_not_read = Mutant(
    "the provider's data in a record are written and never read",
    "session-store",
    (LostAck, TornRecord),
    (
        SourcePatch(
            "system.sessions.session",
            """
            session_id, provider_name, model, SessionState(state), b64decode(blob, validate=True)
            """,
            "session_id, provider_name, model, SessionState(state)",
        ),
    ),
)

empty_directories_stay = Mutant(
    "the empty directory of a creation that never happened stays",
    "session-store",
    (Garbage,),
    (
        SourcePatch(
            "system.sessions.session_store",
            """
            if len(names) == len(swept):
                self._files.rmdir(directory)
                result.removed.append(session_id)
            """,
            "",
        ),
    ),
)

swept_directories_are_not_durable = Mutant(
    "the names of the sessions that a killed process has made are not synced by a boot",
    patches=(
        SourcePatch(
            "system.sessions.session_store",
            """
            # A killed process may have created a name without a sync.
            self._files.sync_dir(self.directory)
            """,
            "pass",
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_session_store.py"
            "::test_the_names_of_the_sessions_are_durable_after_a_sweep"
        ),
    ),
)

record_follows_the_log = Mutant(
    "the record of a new agent is written after the first lines of its log",
    "runtime",
    (FalseAlarm, InvalidState),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            if self.record is None:
                assert self._store is not None
                store = self._store
                await self._host.workers.run(lambda: store.add(record))
                self.record = record
            if self.log is None:
            """,
            "if self.log is None:",
        ),
        SourcePatch(
            "system.agents.agent_log",
            """
            if lines:
                await self._append(lines)
            self.creation = None
            """,
            """
            if lines:
                await self._append(lines)
            if self.record is None:
                assert self._store is not None
                store = self._store
                await self._host.workers.run(lambda: store.add(record))
                self.record = record
            self.creation = None
            """,
        ),
    ),
)

active_records_stay = Mutant(
    "a record that says ACTIVE is not replaced by a boot",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.suspend_sessions",
            "if record is None or record.state is not SessionState.ACTIVE:",
            "if record is None or agent.runnable or record.state is not SessionState.ACTIVE:",
        ),
    ),
)
