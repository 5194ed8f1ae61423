"""A write-ahead log of 200 entries on a simulated disk, its shadow, and recoveries of its files."""

from __future__ import annotations

from collections.abc import Container, Coroutine, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from crash_tests.rig.process_host import host_of
from crash_tests.targets.recording_reads import check_record_files, read_store
from crash_tests.targets.recording_values import following
from oracles.recording.canonical import canonical
from oracles.recording.shadow_execution import LogRecord, LogRecordKind
from oracles.recording.shadow_recording import ShadowRecording
from oracles.recording.wal_reader import WalEntry, log_record_of, read_segment
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host, OpenMode, SideEffectClass
from system.recording.open_recording import open_recording
from system.recording.records.event import EventType
from system.recording.wal.recovery import ReadLog
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore
from system.storage.transfer import write_all

T = TypeVar("T")

ENTRIES: Final = 200
SEGMENT_BYTES: Final = 1_000

_CLASS: Final = SideEffectClass.REVERSIBLE
_REASON: Final = "uses a clock"
_OPEN: Final = 3
_EVENTS: Final = (6, 12, 18)
"""The numbers of events of the executions, which take turns."""


class Step(NamedTuple):
    """One entry of the log: the log record that it holds."""

    execution_id: str
    kind: LogRecordKind
    name: str
    payload: bytes


class Recovered(NamedTuple):
    """A recovery: the log that it found, and the store that it left."""

    log: ReadLog
    store: WalExecutionStore
    host: Host


class Machine:
    """One lifetime on a simulated disk that has the given files."""

    def __init__(self, files: Mapping[str, bytes] | None = None, salt: int = 0) -> None:
        process = Process(Disk(Image.empty()))
        clock = SimulatedClock()
        self.host = host_of(process, clock)
        for _ in range(salt):
            # Other salts of segments, and other ids.
            self.host.ids.uuid_hex()
        self._loop = SimulatedLoop(clock, PlainChoices(), process.disk)
        if files:
            # The first execution has made it together with the log.
            self.host.files.mkdir("records")
        for path, content in (files or {}).items():
            self._write(path, content)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def recover(self) -> Recovered:
        recording, log = self.run(open_recording(self.host, segment_bytes=SEGMENT_BYTES))
        return Recovered(log, WalExecutionStore(recording, self.host.clock), self.host)

    def _write(self, path: str, content: bytes) -> None:
        files, folder = self.host.files, path.rpartition("/")[0]
        if folder and files.kind(folder) is None:
            files.mkdir(folder)
        file = files.open(path, OpenMode.CREATE)
        write_all(file, content, 0)
        file.close()


class RecordedLog(NamedTuple):
    """The files of the log, and one step for each of its entries."""

    files: dict[str, bytes]
    steps: list[Step]
    envelopes: dict[str, bytes]

    def entries(self) -> list[tuple[str, WalEntry]]:
        """Return the segment and the entry of every step."""
        found = []
        for path, content in self.files.items():
            segment = read_segment(content)
            assert segment is not None
            assert segment.end == len(content)
            found += [(path, entry) for entry in segment.entries]
        return found

    def shadow(self, kept: int = ENTRIES) -> ShadowRecording:
        """Return the specification of everything up to an entry: all of it is durable."""
        shadow, log_records = ShadowRecording(), dict[str, LogRecord]()
        for step in self.steps[:kept]:
            if step.kind is LogRecordKind.START:
                shadow.begin_start(self.envelopes[step.execution_id], _CLASS)
                shadow.started(step.execution_id)
                continue
            log_record = (
                shadow.end(step.execution_id, step.payload)
                if step.kind is LogRecordKind.FINAL
                else shadow.begin(step.execution_id, step.kind, step.name, step.payload)
            )
            log_records[step.execution_id] = log_record
            shadow.written(log_record)
        shadow.barrier()
        return shadow

    def check(
        self, files: Mapping[str, bytes], kept: int = ENTRIES, excused: Container[str] = ()
    ) -> ReadLog:
        """Recover files, and compare with everything up to an entry; return the report.

        Executions that are ``excused`` may lack something, if that is reported.
        """
        machine = Machine(files)
        recovered = machine.recover()
        report = recovered.log.report
        is_reported = not report.lost_nothing or bool(report.torn_bytes)
        observed = read_store(recovered.store)
        self.shadow(kept).settle(observed, kept=True, excused=excused, reported=is_reported)
        check_record_files(recovered.host.files, observed)
        return recovered.log


def recorded_log(salt: int = 0) -> RecordedLog:
    """Record executions that take turns, with a barrier behind each entry, up to 200 entries.

    Another ``salt`` gives another lifetime, which records the same.
    """
    machine = Machine(salt=salt)
    steps: list[Step] = []
    envelopes: dict[str, bytes] = {}
    machine.run(_record(machine.host, steps, envelopes))
    files = machine.host.files
    names = [name for name in files.listdir("wal") if name.endswith(".wal")]
    content = {f"wal/{name}": files.read(f"wal/{name}")[0] for name in names}
    log = RecordedLog(content, steps, envelopes)
    log_records = [log_record_of(entry) for _, entry in log.entries()]
    assert [log_record.execution_id for log_record in log_records] == [
        step.execution_id for step in steps
    ]
    assert len(steps) == ENTRIES
    return log


async def _record(host: Host, steps: list[Step], envelopes: dict[str, bytes]) -> None:
    recording, _ = await open_recording(host, segment_bytes=SEGMENT_BYTES)
    running: list[tuple[WalExecutionRecorder, str]] = []
    turn = 0
    while len(steps) < ENTRIES:
        turn += 1
        if len(running) < _OPEN:
            recorder, request = WalExecutionRecorder(host, recording), {"n": len(envelopes)}
            execution_id = recorder.start(request, _CLASS)
            envelopes[execution_id] = canonical(request)
            steps.append(Step(execution_id, LogRecordKind.START, "", b""))
            running.append((recorder, execution_id))
        else:
            recorder, execution_id = running[turn % _OPEN]
            step = _following(steps, execution_id, list(envelopes).index(execution_id))
            steps.append(step)
            if step.kind is LogRecordKind.FINAL:
                running.remove((recorder, execution_id))
                await recorder.finalize({"status": "success"})
            elif step.kind is LogRecordKind.REASON:
                recorder.mark_not_replayable(step.name)
            else:
                given = {"number": _count(steps, execution_id)}
                recorder.record_event(EventType(step.name), given)
        if steps[-1].kind is not LogRecordKind.FINAL:
            await recorder.barrier()


def _following(steps: list[Step], execution_id: str, number: int) -> Step:
    """Return the next step of execution ``number``; every fourth one is marked before its end."""
    of_it = [step for step in steps if step.execution_id == execution_id]
    events = [step.name for step in of_it if step.kind is LogRecordKind.EVENT]
    if len(events) < _EVENTS[number % len(_EVENTS)]:
        event = following(events)
        given = canonical({"number": len(events) + 1})
        return Step(execution_id, LogRecordKind.EVENT, event.value, given)
    if number % 4 == 0 and of_it[-1].kind is not LogRecordKind.REASON:
        return Step(execution_id, LogRecordKind.REASON, _REASON, b"")
    return Step(execution_id, LogRecordKind.FINAL, "FINAL_RESPONSE", b'{"status":"success"}')


def _count(steps: list[Step], execution_id: str) -> int:
    """Return the number of the event that was planned last."""
    kinds = [step.kind for step in steps if step.execution_id == execution_id]
    return kinds.count(LogRecordKind.EVENT)
