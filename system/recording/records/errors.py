"""The errors of recording and replay; those of the disk are ``StorageError``s.

Each docstring gives the cause, then the cure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from system.errors import NotPlainJson, StorageError
from system.foreign import shown

if TYPE_CHECKING:
    from system.recording.records.record import ExecutionRecord


class RecordNotFoundError(StorageError):
    """There is no record of this execution.

    Cause: a wrong id, an execution that was sampled out, or one that was lost in a crash before
    its first entry was durable. Cure: take the ids from ``list_all()`` or ``records list``.
    """

    cure = "take the ids from list_all(), or from the command `records list`"

    def __init__(self, path: str, execution_id: str) -> None:
        super().__init__(path, f"there is no record of execution {shown(execution_id, 100)}")
        self.execution_id = execution_id


class RecordCorruptedError(StorageError):
    """A record differs from the one that was written.

    Cause: the disk or another program changed the file. ``record`` holds everything that can
    still be parsed, unverified, or is None.
    Cure: a forced replay returns what can be parsed, if any; the turn's line has the response.
    """

    cure = "a forced replay returns what can be parsed, if any; the session's log has the response"

    def __init__(
        self, path: str, problems: Sequence[str], record: ExecutionRecord | None = None
    ) -> None:
        super().__init__(path, "; ".join(problems))
        self.problems = tuple(problems)
        self.record = record


class PackCorruptedError(RecordCorruptedError):
    """A pack is missing, refused or damaged, so it may have had records that are not found.

    Cause: the disk or another program changed or removed the file, or the disk does not read it.
    Cure: records that are found can be used; the turns' lines have the responses of the others.
    """

    cure = "records that are found can be used; the sessions' logs have the other responses"


class UnsoundRecord(RecordCorruptedError):
    """A record to be saved is not one that a store returns; nothing was written.

    Cause: its members were changed, and its hashes, its id or the order of its events do not hold.
    Cure: save a record as a recorder or a store has returned it.
    """

    cure = "nothing was written; save a record as a recorder or a store has returned it"


class ForeignRecordFile(StorageError):
    """A file of the store is not a record of this execution.

    Cause: the file name differs from ``executionId``, or the file is not a regular file.
    Cure: move the file out of the store.
    """

    cure = "move it out of the store"


class BarrierFailed(StorageError):
    """A barrier of the write-ahead log failed; it is unknown which entries are durable.

    No more entries are written to the segment, and the next append begins a new one.
    Cause: the disk refused. Cure: repeat the work; entries that were durable before are safe.
    """

    cure = "repeat the work; the log goes on in a new segment"


class EventLost(StorageError):
    """An earlier event of the execution is lost, so no further ones are recorded.

    Cause: the disk refused it, or a barrier that covered it failed.
    Cure: continue and finalize; the reason of the record is ``recording_failure``.
    """

    cure = "go on and finalize; the record will say recording_failure"


class RecorderError(Exception):
    """A call is not allowed in the state of the recorder, or an event not in this order.

    Cure: call ``start`` once, then ``record_event`` in the order of ``docs/recording.md``, then
    ``finalize`` once. A finished record is changed by ``invalidate`` only.
    """


class NotReplayableError(Exception):
    """A record cannot be replayed; the message is only the reason.

    ``details`` are the other reasons that hold. Cure: replay it with ``force``, which returns
    everything that was recorded, or run the request again.
    """

    def __init__(self, reason: str, details: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = tuple(details)


class ReplayHashMismatchError(Exception):
    """The envelope to verify is not the one that was recorded.

    Cure: replay without the envelope, or execute the changed request.
    """

    def __init__(self, recorded: str, provided: str) -> None:
        super().__init__(
            f"Envelope modified since original execution: recorded={recorded}"
            f" provided={provided}; replay without it, or execute the changed request"
        )
        self.recorded = recorded
        self.provided = provided


def problem_of(bad: Exception) -> str:
    """Return why bytes are no record, without the remedy that is for the caller of a recorder.

    Python's own remedy, for an integer with too many digits, is left out too.
    """
    if isinstance(bad, NotPlainJson):
        return f"{bad.place}: {bad.reason.partition('; ')[0]}"
    return str(bad).partition("; ")[0]


def unreadable_text(execution_id: str, error: StorageError | OSError) -> str:
    """Return a sentence about a record that cannot be read; a call of the disk names no record."""
    if isinstance(error, StorageError):
        return str(error)
    return (
        f"execution {execution_id}: {error.strerror or error}; repair the disk and repeat the call"
    )
