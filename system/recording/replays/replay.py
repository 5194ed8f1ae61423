"""Replay: a look-up of the recorded response of an execution; nothing is executed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from system.errors import NewerFormat, StorageError
from system.recording.records.envelope_hash import HashFunction, hash_of_envelope, hash_text
from system.recording.records.errors import (
    NotReplayableError,
    RecordCorruptedError,
    RecordNotFoundError,
    ReplayHashMismatchError,
)
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.header import Reason
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import WRONG_ENVELOPE, envelope_function, find_problems
from system.recording.replays.replay_result import ReplayResult
from system.recording.stores.store import RecordReader

FORCED: Final = "Forced replay of non-replayable record"
MODIFIED: Final = "Envelope modified since original execution"


class VerifyResult(NamedTuple):
    """Whether an envelope is the recorded one; ``error`` says why not."""

    match: bool
    recorded_hash: str | None = None
    provided_hash: str | None = None
    error: str | None = None


def verify_envelope(recorded: object, provided: object) -> VerifyResult:
    """Compare two envelopes by their hashes; raises ``NotPlainJson``."""
    return _compared(
        hash_of_envelope(FrozenJson.of_object(recorded, "recorded envelope")),
        hash_of_envelope(FrozenJson.of_object(provided, "provided envelope")),
    )


def _compared(recorded: str, provided: str) -> VerifyResult:
    match = recorded == provided
    return VerifyResult(match, recorded, provided, None if match else MODIFIED)


class ReplayEngine:
    """Replays one record."""

    def __init__(self, record: ExecutionRecord) -> None:
        self._record = record

    def is_replayable(self) -> tuple[bool, str | None]:
        """Return whether the record can be replayed, and the first reason if not."""
        reasons = self.reasons()
        return (False, reasons[0]) if reasons else (True, None)

    def reasons(self) -> tuple[str, ...]:
        """Return all reasons why it cannot be replayed, in their precedence."""
        record, problems = self._record, find_problems(self._record)
        found: list[str] = []
        if record.frozen_response is None:
            found.append(Reason.EXECUTION_INCOMPLETE)
        if record.header.replayable_reason is not None:
            found.append(record.header.replayable_reason)
        if set(problems) - {WRONG_ENVELOPE}:
            found.append(Reason.RECORD_CORRUPTED)
        if WRONG_ENVELOPE in problems:
            found.append(Reason.ENVELOPE_INVALID)
        return tuple(dict.fromkeys(str(reason) for reason in found))

    def verify_envelope(self, envelope: object) -> VerifyResult:
        """Compare an envelope with the recorded hash, with the function that computed that hash."""
        frozen = FrozenJson.of_object(envelope, "envelope")
        provided = hash_of_envelope(frozen)
        if envelope_function(self._record) is HashFunction.WHOLE_ENVELOPE:
            provided = hash_text(frozen.encoded)
        return _compared(self._record.header.envelope_hash, provided)

    def replay(self, envelope: object = None, *, force: bool = False) -> ReplayResult:
        """Return the recorded response.

        ``force`` omits the check whether the record can be replayed, but not the comparison with
        ``envelope``. Raises ``NotReplayableError``, ``ReplayHashMismatchError`` or
        ``NotPlainJson``.
        """
        reasons = self.reasons()
        if reasons and not force:
            raise NotReplayableError(reasons[0], reasons[1:])
        if envelope is not None:
            verified = self.verify_envelope(envelope)
            if not verified.match:
                raise ReplayHashMismatchError(
                    str(verified.recorded_hash), str(verified.provided_hash)
                )
        return ReplayResult.of(self._record, (FORCED,) if reasons else ())


def replay(
    store: RecordReader, execution_id: str, envelope: object = None, *, force: bool = False
) -> ReplayResult:
    """Load and replay a record; with ``force``, the readable part of a corrupted one.

    Raises as ``ExecutionStore.load`` and ``ReplayEngine.replay``.
    """
    return ReplayEngine(record_to_replay(store, execution_id, force=force)).replay(
        envelope, force=force
    )


def record_to_replay(store: RecordReader, execution_id: str, *, force: bool) -> ExecutionRecord:
    """Load the record that ``replay`` replays; raises as ``ExecutionStore.load``."""
    try:
        return store.load(execution_id)
    except RecordCorruptedError as corrupted:
        if not force or corrupted.record is None:
            raise
        return corrupted.record


def batch_replay(store: RecordReader, ids: Iterable[str]) -> dict[str, ReplayResult]:
    """Replay several records; the result of a replay that fails has its error."""
    results: dict[str, ReplayResult] = {}
    for execution_id in ids:
        if execution_id in results:
            continue
        try:
            results[execution_id] = replay(store, execution_id)
        except (NotReplayableError, StorageError, OSError) as error:
            results[execution_id] = _failed(execution_id, error)
    return results


def _failed(execution_id: str, error: Exception) -> ReplayResult:
    code = code_of(error)
    return ReplayResult(
        original_execution_id=execution_id,
        frozen_metadata=FrozenJson.of({"error": code}),
        warnings=(f"Not replayable: {code}",),
        failure=error,
    )


def code_of(error: Exception) -> str:
    """Return the code of an error of a replay: a reason, or one of four others."""
    match error:
        case NotReplayableError():
            return error.reason
        case RecordNotFoundError():
            return "record_not_found"
        case NewerFormat():
            return "newer_format"
        case StorageError():
            return str(Reason.RECORD_CORRUPTED)
        case _:
            return "io_error"
