"""Mutants of recorders, records and replay: the holes I3, I6, I8, I9, I13 to I16, I18, I19."""

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
            "system.recording.structure",
            """
            if not record.header.is_foreign:
                problems += _seal_problems(record)
            return tuple(problems)
            """,
            "return tuple(problems)",
        ),
    ),
)

record_is_written_in_place = Mutant(
    "a record is written over the old one",
    _TARGET,
    (LostAck,),
    (
        SourcePatch(
            "system.recording.file_store",
            "replace_by_pieces(files, path, data, self._host.ids, self._scratch)",
            """
            is_new = files.kind(path) is None
            file = files.open(path, OpenMode.CREATE if is_new else OpenMode.WRITE)
            try:
                file.truncate(0)
                write_all(file, b"".join(data), 0)
                file.fsync()
            finally:
                file.close()
            """,
        ),
        SourcePatch(
            "system.recording.file_store",
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
            "system.recording.wal_recording",
            "def append(self, execution: Execution, event: ExecutionEvent | StoredEvent) -> None:",
            """
            def append(self, execution: Execution, event: ExecutionEvent | StoredEvent) -> None:
                if event.type != EventType.FINAL_RESPONSE:
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
            "system.recording.header", "replayable: bool = False", "replayable: bool = True"
        ),
        SourcePatch(
            "system.recording.header",
            "replayable_reason: str | None = Reason.EXECUTION_INCOMPLETE",
            "replayable_reason: str | None = None",
        ),
    ),
)

saved_record_is_not_durable = Mutant(
    "the name of a saved record is not made durable",
    _TARGET,
    (LostAck, Resurrected),
    (
        SourcePatch(
            "system.recording.file_store",
            """
            (path,) = self.write([record])
            self.sync()
            """,
            "(path,) = self.write([record])",
        ),
    ),
)

envelope_is_kept_by_reference = Mutant(
    "the record has the envelope as it is when the execution ends",
    _TARGET,
    (BrokenRecord,),
    (
        SourcePatch(
            "system.recording.recorder",
            'frozen = FrozenJson.of_object(envelope, "envelope")',
            """
            frozen = FrozenJson.of_object(envelope, "envelope")
            self._envelope = envelope
            """,
        ),
        SourcePatch(
            "system.recording.recorder",
            """
            self._backend.end(execution)
            await self._backend.barrier(execution)
            """,
            """
            execution.envelope = FrozenJson.of_object(self._envelope, "envelope")
            self._backend.end(execution)
            await self._backend.barrier(execution)
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
            "system.recording.plain_json",
            'raise NotPlainJson(place, f"{type(value).__name__} is not plain JSON data")',
            "return str(value)",
        ),
    ),
)

any_key_becomes_a_text = Mutant(
    "a key that is no text is recorded as its text",
    _TARGET,
    (InvalidState,),
    (
        SourcePatch(
            "system.recording.plain_json",
            """
            if type(key) is not str:
                raise NotPlainJson(place, f"the key {key!r} is not a str")
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
            "system.recording.replay_result",
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
            "system.recording.execution",
            """
            if self.header.replayable_reason == Reason.EXECUTION_INCOMPLETE:
                self.header = replace(self.header, replayable=True, replayable_reason=None)
            """,
            "self.header = replace(self.header, replayable=True, replayable_reason=None)",
        ),
    ),
)

redo_brings_invalidated_records_back = Mutant(
    "a record in the log replaces one that was invalidated",
    _TARGET,
    (Resurrected,),
    (
        SourcePatch(
            "system.recording.file_store",
            "if record.frozen_response is not None or record.header.invalidation is not None:",
            "if False:",
        ),
    ),
)
