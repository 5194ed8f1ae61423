"""The records of a running runtime: those in files, and those that are only in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from system.ports import Clock, Host
from system.recording.executions.execution import ExecutionView
from system.recording.recorder import Recorder
from system.recording.records.errors import RecorderError
from system.recording.records.event import ExecutionEvent
from system.recording.records.execution_id import checked_rate, is_execution_id
from system.recording.records.invalidation import check_not_running, invalidated
from system.recording.records.record import ExecutionRecord
from system.recording.stores.pack_stream import PackStream
from system.recording.stores.record_stream import RecordStream
from system.recording.wal.logged_executions import place_of, sound_record
from system.recording.wal.recording import WalRecording


class WalExecutionStore:
    """An ``ExecutionStore`` over the recording of a root.

    It also finds running executions, and finished ones whose last entries are not durable yet.
    ``check_open`` is called before each access; it raises ``Closed`` when the root may belong to
    another process.
    """

    def __init__(
        self,
        recording: WalRecording,
        clock: Clock,
        check_open: Callable[[], object] = lambda: None,
    ) -> None:
        self._of_root = recording
        self._clock = clock
        self._check_open = check_open

    @property
    def _recording(self) -> WalRecording:
        self._check_open()
        return self._of_root

    def save(self, record: ExecutionRecord) -> str:
        self._check_not_changing(record.execution_id)
        path = self._recording.files.save(record)
        self._recording.forget(record.execution_id)
        return path

    def load(self, execution_id: str) -> ExecutionRecord:
        if self.is_running(execution_id):
            return sound_record(self._recording.running[execution_id])
        if (view := self._waiting(execution_id)) is not None:
            record = sound_record(view)
            # The next checkpoint writes this record, so its hashes are those of the file too.
            self._recording.files.note(record)
            return record
        return self._recording.files.load(execution_id)

    def stream_events(self, execution_id: str) -> Iterator[ExecutionEvent]:
        """Yield the events of a long record, one at a time in memory, as ``load`` finds it.

        Raises as ``FileExecutionStore.stream_events``, before the first one.
        """
        yield from self._stream(execution_id).events()

    def stream_response(self, execution_id: str) -> Iterator[bytes]:
        """Yield the final response of a long record, as ``stream_events`` the events."""
        yield from self._stream(execution_id).response()

    def _stream(self, execution_id: str) -> RecordStream | PackStream:
        view = self._waiting(execution_id)
        if self.is_running(execution_id):
            view = self._recording.running[execution_id].view()
        if view is None:
            return self._recording.files.stream(execution_id)
        return PackStream(view.verified_pieces, place_of(execution_id))

    def list_all(self) -> Iterator[str]:
        recording = self._recording
        return iter(sorted({*recording.files.list_all(), *recording.waiting, *recording.running}))

    def find_by_hash(self, envelope_hash: str) -> list[str]:
        recording = self._recording
        found = {*recording.files.find_by_hash(envelope_hash)}
        hashes = {key: view.envelope_hash for key, view in recording.waiting.items()}
        hashes |= {key: execution.envelope_hash for key, execution in recording.running.items()}
        return sorted(found.union(key for key in hashes if hashes[key] == envelope_hash))

    def is_running(self, execution_id: str) -> bool:
        """Return whether the execution is open in this process."""
        return is_execution_id(execution_id) and execution_id in self._recording.running

    def _waiting(self, execution_id: str) -> ExecutionView | None:
        """Return a finished execution that is only in the log."""
        return self._recording.waiting.get(execution_id) if is_execution_id(execution_id) else None

    def hash_of(self, execution_id: str) -> str | None:
        if self.is_running(execution_id):
            return None
        return self._recording.files.hash_of(execution_id)

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        self._check_not_changing(execution_id)
        record = invalidated(self.load(execution_id), reason, by, self._clock)
        # An earlier call may have changed the file and failed before it was durable.
        self.save(record)
        return record

    def _check_not_changing(self, execution_id: str) -> None:
        check_not_running(execution_id, is_running=self.is_running(execution_id))
        if is_execution_id(execution_id) and execution_id in self._recording.being_written:
            raise RecorderError(
                f"Cannot change {execution_id}: a checkpoint is writing it; repeat the call"
            )


class WalExecutionRecorder(Recorder):
    """A recorder that writes to the write-ahead log, so every durable event survives a crash.

    Raises ``ValueError`` for a ``sample_rate`` that is no number from 0.0 to 1.0.
    """

    def __init__(
        self, host: Host, recording: WalRecording, sample_rate: float = 1.0, *, at_once: bool = True
    ) -> None:
        rate = checked_rate(sample_rate)
        super().__init__(host.clock, host.ids, recording, rate, at_once=at_once)
