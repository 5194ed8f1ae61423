"""The root of a recording that was killed, with executions in every state, and its specification.

The recording makes a checkpoint, and records on in a second segment. No barrier covers
the last log records of two executions.
"""

from __future__ import annotations

from collections.abc import Coroutine
from copy import deepcopy
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar
from unittest.mock import patch

from crash_tests.targets.recording_values import envelope, following, payload, response
from crash_tests.workloads.lifetime import Lifetime
from oracles.recording.canonical import canonical
from oracles.recording.shadow_execution import LogRecordKind
from oracles.recording.shadow_recording import ShadowRecording
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX
from sim.disk.disk import Disk
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host, SideEffectClass
from system.recording.open_recording import open_recording
from system.recording.records.event import EventType
from system.recording.records.long_text import LongText
from system.recording.wal.recording import WalRecording
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore

T = TypeVar("T")

SEGMENT_BYTES: Final = 6_500
INVALIDATION: Final = ("wrong answer", "Anna")

_MOST_BYTES: Final = 1_500
"""The most bytes of an execution in memory; so few that long executions are spooled."""
_ENTRY_BYTES: Final = 800
"""The most bytes of an entry of the log; so few that a long response has several."""
_PIECES: Final = ("a long answer " * 60,) * 3
_CLASS: Final = SideEffectClass.REVERSIBLE


class RecordedRoot(NamedTuple):
    """The disk after a kill, the specification of its executions, and their ids by name."""

    image: Image
    expected: ShadowRecording
    ids: dict[str, str]

    def shadow(self) -> ShadowRecording:
        """Return a copy of the specification, for one recovery."""
        return deepcopy(self.expected)

    def durable(self) -> RecordedRoot:
        """Return the root after a clean shutdown of the machine: all log records are durable."""
        shadow = self.shadow()
        shadow.barrier()
        image = Image.of_platter(self.image.cached, self.image.next_inode)
        return RecordedRoot(image, shadow, self.ids)


@cache
def recorded_root() -> RecordedRoot:
    """Record executions on a disk, and kill the process."""
    process = Process(Disk(Image.empty(), POSIX))
    short = [
        patch(f"system.recording.wal.{each}.PIECE_BYTES", _ENTRY_BYTES)
        for each in ("log", "segment")
    ]
    with short[0], short[1], Lifetime(process) as (host, loop):
        opened = open_recording(host, segment_bytes=SEGMENT_BYTES, most_bytes=_MOST_BYTES)
        recording, _ = loop.run_until_complete(opened)
        recorders = Recorders(host, loop, recording)
        _record_durably(recorders)
        # Old files that are removed, and a spool, would only multiply the crash states.
        process.sync()
        _record_last(recorders)
        ids = {name: recorders.ids[name] for name in recorders.ids}
        image = process.disk.snapshot()
    return RecordedRoot(image, recorders.shadow, ids)


def _record_durably(recorders: Recorders) -> None:
    recorders.start("packed", 4)
    recorders.finalize("packed")
    recorders.start("under way", 2)
    recorders.start("waiting", 2)
    recorders.barrier("waiting")
    recorders.checkpoint()
    recorders.append("under way", 1)
    recorders.start("logged", 7)
    recorders.finalize("logged")
    recorders.start("streamed", 16)
    recorders.finalize("streamed", _PIECES)
    recorders.start("withdrawn", 4)
    recorders.finalize("withdrawn")
    recorders.invalidate("withdrawn")
    recorders.start("marked", 1)
    recorders.mark("marked", "uses a clock")
    recorders.start("completed", 4)
    recorders.barrier("completed")


def _record_last(recorders: Recorders) -> None:
    """Record what no barrier covers."""
    recorders.complete("completed")
    recorders.append("under way", 1)


class Recorders:
    """Recorders by name, with their specification in ``shadow``."""

    def __init__(self, host: Host, loop: SimulatedLoop, recording: WalRecording) -> None:
        self.shadow = ShadowRecording()
        self.ids: dict[str, str] = {}
        self._host = host
        self._loop = loop
        self._recording = recording
        self._recorders: dict[str, WalExecutionRecorder] = {}

    def start(self, name: str, events: int = 0) -> None:
        """Start an execution, and record events."""
        request = envelope(len(self.ids), name)
        self.shadow.begin_start(canonical(request), str(_CLASS))
        recorder = WalExecutionRecorder(self._host, self._recording)
        self.ids[name] = recorder.start(request, _CLASS)
        self.shadow.started(self.ids[name])
        self._recorders[name] = recorder
        self.append(name, events)

    def append(self, name: str, events: int) -> None:
        """Record the next events of an execution."""
        for _ in range(events):
            types = self._types(name)
            event_type = following(types)
            value = payload(event_type, len(types) + 1, "success")
            log_record = self.shadow.begin(
                self.ids[name], LogRecordKind.EVENT, event_type.value, canonical(value)
            )
            self._recorders[name].record_event(event_type, value)
            self.shadow.written(log_record)

    def _types(self, name: str) -> list[str]:
        log_records = self.shadow.executions[self.ids[name]].log_records
        return [
            log_record.name for log_record in log_records if log_record.kind is LogRecordKind.EVENT
        ]

    def mark(self, name: str, reason: str) -> None:
        """Record that an execution is not replayable."""
        log_record = self.shadow.begin(self.ids[name], LogRecordKind.REASON, reason, b"")
        self._recorders[name].mark_not_replayable(reason)
        self.shadow.written(log_record)

    def barrier(self, name: str) -> None:
        """Make an execution durable."""
        self._run(self._recorders[name].barrier())
        self.shadow.barrier(self.ids[name])

    def finalize(self, name: str, pieces: tuple[str, ...] = ()) -> None:
        """End an execution durably; an answer in pieces is streamed."""
        answer = response([EventType.AGENT_ATTEMPT_END], "".join(pieces) or name, "success")
        log_record = self.shadow.end(self.ids[name], canonical(answer))
        if pieces:
            given = {**answer, "payload": {"response": LongText(pieces)}}
            self._run(self._recorders[name].end(given))
        else:
            self._run(self._recorders[name].finalize(answer))
        self.shadow.written(log_record)
        self.shadow.barrier(self.ids[name])

    def complete(self, name: str) -> None:
        """End an execution without a barrier."""
        answer = response([], name, "error")
        log_record = self.shadow.end(self.ids[name], canonical(answer))
        self._recorders[name].complete(answer)
        self.shadow.written(log_record)

    def checkpoint(self) -> None:
        """Write records and snapshots."""
        self._run(self._recording.checkpoint())
        self.shadow.checkpoint()

    def invalidate(self, name: str) -> None:
        """Invalidate the record of a finished execution."""
        self.shadow.begin_invalidate(self.ids[name], *INVALIDATION)
        store = WalExecutionStore(self._recording, self._host.clock)
        store.invalidate(self.ids[name], *INVALIDATION)
        self.shadow.invalidated(self.ids[name])

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)
