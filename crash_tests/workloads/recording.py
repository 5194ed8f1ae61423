"""Recorder, write-ahead log and record store: three executions, a checkpoint, an invalidation.

The segments are so small that the executions fill several, and the checkpoint removes some.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from crash_tests.targets.recording_reads import (
    check_incomplete,
    check_record_files,
    read_store,
)
from crash_tests.targets.recording_values import envelope, following, payload, response
from crash_tests.workloads.lifetime import Lifetime
from crash_tests.workloads.observations import Observer, replay_observations
from crash_tests.workloads.workload import Workload
from oracles.history import History, Known
from oracles.recording.canonical import canonical
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.shadow_execution import LogRecordKind
from oracles.recording.shadow_recording import ShadowRecording
from oracles.violation import FalseAlarm
from powercut.explorer.limits import Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host, SideEffectClass
from system.recording.open_recording import open_recording
from system.recording.records.event import EventType
from system.recording.wal.recording import WalRecording
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore

T = TypeVar("T")

_SEGMENT_BYTES: Final = 1_000
_SIDE_EFFECTS: Final = SideEffectClass.REVERSIBLE
_REASON: Final = ("wrong answer", "Anna")


class _Recorders:
    """The recorders of one lifetime; ``observer`` takes their calls."""

    def __init__(
        self, host: Host, loop: SimulatedLoop, recording: WalRecording, observer: Observer
    ) -> None:
        self._host = host
        self._loop = loop
        self._recording = recording
        self._observer = observer
        self._recorders: dict[str, WalExecutionRecorder] = {}

    def work(self) -> None:
        """Finalize one execution, complete another, and leave a third one running."""
        first, second, third = (self._start(number) for number in range(3))
        self._append(first, 4)
        self._append(second, 3)
        self._finalize(first)
        self._checkpoint()
        self._invalidate(first)
        self._append(third, 3)
        self._barrier(third)
        self._complete(second)
        self._checkpoint()
        self._recording.log.close()
        self._observer.end()

    def _start(self, number: int) -> str:
        request = envelope(number, "Good morning")
        text = canonical(request)
        self._observer.attempt(lambda shadow: shadow.begin_start(text, str(_SIDE_EFFECTS)))
        recorder = WalExecutionRecorder(self._host, self._recording)
        execution_id = recorder.start(request, _SIDE_EFFECTS)
        self._observer.attempt(lambda shadow: shadow.started(execution_id))
        self._recorders[execution_id] = recorder
        return execution_id

    def _append(self, execution_id: str, events: int) -> None:
        types: list[str] = []
        for number in range(1, events + 1):
            event_type = following(types)
            value = payload(event_type, number, "success")
            self._begin(execution_id, LogRecordKind.EVENT, event_type, canonical(value))
            self._recorders[execution_id].record_event(event_type, value)
            self._observer.attempt(lambda shadow: _written(shadow, execution_id))
            types.append(event_type)

    def _begin(self, execution_id: str, kind: LogRecordKind, name: str, value: bytes) -> None:
        self._observer.attempt(lambda shadow: shadow.begin(execution_id, kind, name, value))

    def _finalize(self, execution_id: str) -> None:
        answer = response([EventType.AGENT_ATTEMPT_END], "Hello", "success")
        self._observer.attempt(lambda shadow: shadow.end(execution_id, canonical(answer)))
        self._run(self._recorders[execution_id].finalize(answer))
        self._observer.attempt(lambda shadow: _written(shadow, execution_id))
        self._observer.acknowledge(lambda shadow: shadow.barrier(execution_id))

    def _complete(self, execution_id: str) -> None:
        answer = response([], "Failed", "error")
        self._observer.attempt(lambda shadow: shadow.end(execution_id, canonical(answer)))
        self._recorders[execution_id].complete(answer)
        self._observer.attempt(lambda shadow: _written(shadow, execution_id))

    def _barrier(self, execution_id: str) -> None:
        self._run(self._recorders[execution_id].barrier())
        self._observer.acknowledge(lambda shadow: shadow.barrier(execution_id))

    def _checkpoint(self) -> None:
        self._run(self._recording.checkpoint())
        self._observer.acknowledge(lambda shadow: shadow.checkpoint())

    def _invalidate(self, execution_id: str) -> None:
        self._observer.attempt(lambda shadow: shadow.begin_invalidate(execution_id, *_REASON))
        WalExecutionStore(self._recording, self._host.clock).invalidate(execution_id, *_REASON)
        self._observer.acknowledge(lambda shadow: shadow.invalidated(execution_id))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


def _written(shadow: ShadowRecording, execution_id: str) -> None:
    """Record that the last call of an execution has returned."""
    shadow.written(shadow.executions[execution_id].log_records[-1])


def _work(process: Process, ack: History) -> None:
    with Lifetime(process) as (host, loop):
        opened = loop.run_until_complete(open_recording(host, segment_bytes=_SEGMENT_BYTES))
        _Recorders(host, loop, opened[0], Observer(ack)).work()


def _recover(process: Process) -> dict[str, ObservedRecord | None]:
    with Lifetime(process) as (host, loop):
        opened = open_recording(host, segment_bytes=_SEGMENT_BYTES)
        recording, log = loop.run_until_complete(opened)
        store = WalExecutionStore(recording, host.clock)
        observed = read_store(store)
        check_incomplete(store, observed)
        check_record_files(host.files, observed)
    if not log.report.lost_nothing:
        raise FalseAlarm("recovery reports damage that no crash can do", report=str(log.report))
    return observed


def _judge(observed: dict[str, ObservedRecord | None], known: Known) -> None:
    shadow = ShadowRecording()
    replay_observations(known, shadow)
    shadow.settle(observed, kept=False)


recording = Workload(
    "record three executions, write checkpoints, invalidate one; recover, crash the recovery",
    _work,
    TwoPhases(_recover, _judge),
    Limits(states_per_point=16, samples=4),
)
