"""Mutants of recorders, records and replay (docs/planted-bugs.md)."""

from __future__ import annotations

from typing import Final

from oracles.recording.violations import BrokenRecord, UnearnedReplay, WrongReplay
from oracles.violation import InvalidState, LostAck, Resurrected
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET: Final = "recording"

missing_events_are_not_noticed = Mutant(
    "a record that has lost its last event counts as whole",
    _TARGET,
    (BrokenRecord,),
    (
        SourcePatch(
            "system.recording.stores.pack",
            "if digest.digest()[:_DIGEST_BYTES] != self.digest:",
            "if False:",
        ),
    ),
)

record_is_written_in_place = Mutant(
    "a record is written over the old one",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.recording.stores.file_store",
            "replace_by_pieces(files, path, content, self._host.ids, self._scratch)",
            """
            is_new = files.kind(path) is None
            file = files.open(path, OpenMode.CREATE if is_new else OpenMode.WRITE)
            try:
                file.truncate(0)
                write_all(file, b"".join(content), 0)
                file.fsync()
            finally:
                file.close()
            """,
        ),
        SourcePatch(
            "system.recording.stores.file_store",
            "from system.ports import FileKind, Host",
            """
            from system.ports import FileKind, Host, OpenMode
            from system.storage.transfer import write_all
            """,
        ),
    ),
)

events_are_written_at_the_end = Mutant(
    "nothing but start and final response is written to the log",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.recording.wal.recording",
            """
            is_final = log_record.entry_type == _FINAL_RESPONSE
            """,
            """
            is_final = log_record.entry_type == _FINAL_RESPONSE
            if not is_final:
                return
            """,
        ),
    ),
)

record_is_replayable_from_its_start = Mutant(
    "an execution that has just started counts as replayable",
    _TARGET,
    (UnearnedReplay,),
    (
        SourcePatch(
            "system.recording.executions.execution",
            "self.reason: str | None = _INCOMPLETE",
            "self.reason: str | None = None",
        ),
        SourcePatch(
            "system.recording.executions.record_builder",
            "self.reason: str | None = Reason.EXECUTION_INCOMPLETE",
            "self.reason: str | None = None",
        ),
    ),
)

saved_record_is_not_durable = Mutant(
    "the name of a saved record is not made durable",
    _TARGET,
    (LostAck, Resurrected),
    (
        SourcePatch(
            "system.recording.stores.file_store",
            """
            self.note(record)
            self.sync()
            """,
            "self.note(record)",
        ),
    ),
)

envelope_is_kept_by_reference = Mutant(
    "the record has the envelope as it is when the record is read",
    _TARGET,
    (BrokenRecord,),
    (
        SourcePatch(
            "system.recording.recorder",
            """
            self._execution = execution
            return execution_id
            """,
            """
            self._execution = execution
            KEPT[execution_id] = envelope
            return execution_id
            """,
        ),
        SourcePatch(
            "system.recording.recorder",
            "from system.recording.stores.memory_store import InMemoryExecutionStore",
            """
            from system.recording.executions.record_builder import KEPT
            from system.recording.stores.memory_store import InMemoryExecutionStore
            """,
        ),
        SourcePatch(
            "system.recording.executions.record_builder",
            "_ENVELOPE: Final = b'{\"envelope\":'",
            """
            KEPT = {}
            _ENVELOPE: Final = b'{"envelope":'
            """,
        ),
        SourcePatch(
            "system.recording.executions.record_builder",
            "header = self.start.header(self.reason)",
            """
            header = self.start.header(self.reason)
            if self.start.execution_id in KEPT:
                self.envelope = FrozenJson.of(KEPT[self.start.execution_id])
            """,
        ),
    ),
)

any_object_becomes_a_text = Mutant(
    "a value that JSON does not have is recorded as its text",
    _TARGET,
    (InvalidState,),
    (
        SourcePatch(
            "system.recording.records.plain_json",
            'raise NotPlainJson(place, f"{type(value).__name__} is not plain JSON data")',
            "return str(value)",
        ),
    ),
)

any_key_becomes_a_text = Mutant(
    "a key that is not a text is recorded as its text",
    _TARGET,
    (InvalidState,),
    (
        SourcePatch(
            "system.recording.records.plain_json",
            """
            if type(key) is not str:
                raise NotPlainJson(place, f"the key {shown(key, 100)} is not a str")
            plain[key] = plain_json(item, f"{place}[{key!a}]", levels)
            """,
            'plain[str(key)] = plain_json(item, f"{place}[{key!a}]", levels)',
        ),
    ),
)

response_is_shared = Mutant(
    "every replay returns the same object as its response",
    _TARGET,
    (WrongReplay,),
    (
        SourcePatch(
            "system.recording.replays.replay_result",
            "return None if self.frozen_response is None else self.frozen_response.members()",
            """
            if self.frozen_response is None:
                return None
            known = globals().setdefault("_known", {})
            return known.setdefault(self.frozen_response.encoded, self.frozen_response.members())
            """,
        ),
    ),
)

response_lifts_every_reason = Mutant(
    "the final response makes every record replayable",
    _TARGET,
    (UnearnedReplay,),
    (
        SourcePatch(
            "system.recording.executions.execution",
            "if self.last_event == _FINAL and self.reason == _INCOMPLETE:",
            "if self.is_finished:",
        ),
        SourcePatch(
            "system.recording.executions.record_builder",
            """
            self.response = event.frozen_payload
            if self.reason == Reason.EXECUTION_INCOMPLETE:
                self.reason = None
            """,
            """
            self.response = event.frozen_payload
            self.reason = None
            """,
        ),
    ),
)

redo_brings_invalidated_records_back = Mutant(
    "a record in the log replaces one that was invalidated",
    _TARGET,
    (Resurrected,),
    (
        SourcePatch(
            "system.recording.stores.file_store",
            "if record.frozen_response is not None or record.header.invalidation is not None:",
            "if False:",
        ),
        SourcePatch(
            "system.recording.stores.file_store",
            "record = still_invalidated(record, self._own_record(record.execution_id))",
            "record = still_invalidated(record, None)",
        ),
    ),
)
