"""The calls of recorders, for the target of recording: start, event, mark, barrier, end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from crash_tests.targets.recording_reads import DamagedCopy, check_unknown, read_one
from crash_tests.targets.recording_values import (
    ODD,
    REFUSED,
    envelope,
    following,
    in_pieces,
    odd_value,
    payload,
    plain_value,
    response,
)
from crash_tests.targets.system_target import SystemTarget
from oracles.recording.canonical import canonical
from oracles.recording.marks import SEGMENT_CHANGED
from oracles.recording.record_reader import read_record
from oracles.recording.shadow_execution import FAILURE, LogRecord, LogRecordKind
from oracles.recording.shadow_recording import ShadowRecording, is_sampled
from oracles.violation import FalseAlarm, InvalidState, LostAck
from powercut.fuzz.action import Arguments
from powercut.fuzz.fault_families import FaultFamily, damage_of
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from sim.world import World
from system.errors import NotPlainJson, StorageError
from system.ports import Host, SideEffectClass
from system.recording.records.errors import BarrierFailed, EventLost, RecordCorruptedError
from system.recording.wal.recording import WalRecording
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore

T = TypeVar("T")

MOST_OPEN: Final = 3
MOST_EXECUTIONS: Final = 12

MOST_BYTES: Final = 1_500
"""The most bytes of an execution in memory; so few that runs write events to spools."""

_HEADER_BYTES: Final = 500
_LOG_RECORD_BYTES: Final = 150
"""The most bytes of the JSON of a header, and of a log record without its payload."""

_SIDE_EFFECTS: Final = tuple(SideEffectClass)
_STATUSES: Final = ("success", "error")
_ENDS: Final = ("finalize", "complete")
_RATES: Final = (100, 100, 100, 50)


class RecorderTarget(SystemTarget):
    """The recorders of one root and their shadow; a target derives from it.

    ``_families`` are the kinds of silent damage that a fault may have done since the last
    recovery without a fault. Only the executions in ``_recorders`` are running. Those in
    ``_in_pieces`` were given a response in several pieces. ``_damaged_copies`` are in packs since
    an earlier recovery.
    """

    def __init__(self) -> None:
        self._shadow = ShadowRecording()
        self._recorders: dict[str, WalExecutionRecorder] = {}
        self._responses: dict[str, dict[str, Any]] = {}
        self._started = 0
        self._pieces = 1
        self._in_pieces: set[str] = set()
        self._faulty = False
        self._open = False
        self._barrier_failed = False
        self._families: frozenset[FaultFamily] = frozenset()
        self._damaged_copies: frozenset[DamagedCopy] = frozenset()
        self._host: Host
        self._world: World[Host]
        self._recording: WalRecording
        self._store: WalExecutionStore

    def attach(self, world: World[Host]) -> None:
        """Keep the world."""
        self._world = world

    # -- recorders -----------------------------------------------------------------------

    def _propose_start(self, choices: Choices) -> Arguments:
        return {
            "events": choices.integer("events", 0, 4),
            "side_effects": choices.pick("side effects", _SIDE_EFFECTS),
            "text": text(choices),
            "odd": choices.pick("odd", ODD),
            "rate": choices.pick("rate", _RATES),
        }

    def _start(self, arguments: Arguments) -> str:
        self._meet_faults()
        self._started += 1
        request = envelope(self._started, str(arguments["text"]))
        odd, rate = str(arguments["odd"]), int(str(arguments["rate"])) / 100
        expected = dict(request)
        if odd:
            request["odd"] = odd_value(odd)
            expected["odd"] = None if odd in REFUSED else plain_value(odd)
        recorder = WalExecutionRecorder(self._host, self._recording, rate)
        side_effects = SideEffectClass(str(arguments["side_effects"]))
        self._shadow.begin_start(canonical(expected), side_effects)
        try:
            execution_id = recorder.start(request, side_effects)
        except NotPlainJson as refused:
            self._shadow.refuse_start()
            if odd not in REFUSED:
                raise FalseAlarm("plain JSON is refused", raised=repr(refused)) from None
            return "not plain"
        except (OSError, StorageError) as refused:
            return self._refused(refused, "")
        if odd in REFUSED:
            raise InvalidState("a value is recorded that JSON does not have", value=odd)
        # The recorder keeps the value at the time of the call, also if the object is changed.
        request["payload"][0]["payload"] = "changed by the caller"
        sampled = is_sampled(execution_id, rate)
        self._shadow.started(execution_id, sampled=sampled)
        if not sampled:
            try:
                check_unknown(self._store, execution_id, self._damaged_copies)
            except (OSError, StorageError) as refused:
                return self._refused(refused, "")
            return "sampled out"
        self._recorders[execution_id] = recorder
        self._mark_changed_segment()
        for _ in range(int(str(arguments["events"]))):
            if self._append(execution_id, _STATUSES[0]) != "appended":
                break
        return f"started, {len(self._types(execution_id))} events"

    def _propose_event(self, choices: Choices) -> Arguments:
        return {**self._propose_one(choices), "status": choices.pick("status", _STATUSES)}

    def _event(self, arguments: Arguments) -> str:
        self._meet_faults()
        return self._append(self._open_id(arguments), str(arguments["status"]))

    def _append(self, execution_id: str, status: str) -> str:
        """Record the next event of an execution, unless its end was refused."""
        if execution_id in self._responses:
            return "ending"
        types = self._types(execution_id)
        event_type = following(types)
        value = payload(event_type, len(types) + 1, status)
        log_record = self._shadow.begin(
            execution_id, LogRecordKind.EVENT, event_type.value, canonical(value)
        )
        try:
            self._recorders[execution_id].record_event(event_type, value)
        except EventLost as refused:
            self._shadow.withdraw(execution_id, log_record)
            execution = self._shadow.executions[execution_id]
            if self.fault_plan:
                self._shadow.disturb()
            if not (execution.lost or execution.doubted or self._families):
                raise FalseAlarm("no event was lost", raised=repr(refused)) from None
            return "event lost before"
        except (OSError, StorageError) as refused:
            self._shadow.lost(execution_id)
            return self._refused(refused, execution_id)
        value["changed"] = "by the caller"
        self._shadow.written(log_record)
        self._meet_faults()
        return "appended"

    def _propose_finish(self, choices: Choices) -> Arguments:
        return {
            **self._propose_one(choices),
            "text": text(choices),
            "status": choices.pick("status", _STATUSES),
            "end": choices.pick("end", _ENDS),
            "others": choices.integer("others", 0, MOST_OPEN - 1),
            "pieces": choices.integer("pieces", 1, 2),
        }

    def _finish(self, arguments: Arguments) -> str:
        """End one execution, or finalize several at once."""
        self._meet_faults()
        first = self._open_id(arguments)
        others = [each for each in self._recorders if each != first]
        ids = [first, *others[: int(str(arguments["others"]))]]
        if arguments["end"] == "complete":
            ids = [first]
        for execution_id in ids:
            given = response(
                self._types(execution_id), str(arguments["text"]), str(arguments["status"])
            )
            self._responses.setdefault(execution_id, given)
        self._pieces = int(str(arguments.get("pieces", 1)))
        if self._pieces > 1:
            self._in_pieces.update(ids)
        if arguments["end"] == "complete":
            return self._complete(first)
        log_records = {
            each: self._shadow.end(each, canonical(self._responses[each])) for each in ids
        }
        return self._run(self._finalize_all(log_records))

    async def _finalize_all(self, log_records: Mapping[str, LogRecord]) -> str:
        outcomes = await asyncio.gather(*(self._finalize(*item) for item in log_records.items()))
        return ", ".join(outcomes)

    async def _finalize(self, execution_id: str, log_record: LogRecord) -> str:
        recorder = self._recorders[execution_id]
        try:
            record = await recorder.finalize(in_pieces(self._responses[execution_id], self._pieces))
        except BarrierFailed as refused:
            # The record has all events: the next checkpoint writes it, or a gap shows the loss.
            if not self._store.is_running(execution_id):
                del self._recorders[execution_id]
            return self._refused(refused, "", late=execution_id)
        except (OSError, StorageError) as refused:
            return self._refused(refused, execution_id)
        del self._recorders[execution_id]
        assert record is not None
        self._shadow.written(log_record)
        self._shadow.barrier(execution_id, self._admitted())
        self._shadow.finalized(execution_id)
        self._mark_changed_segment()
        self._shadow.check(execution_id, read_record(record.to_dict()))
        return "finalized"

    def _complete(self, execution_id: str) -> str:
        """End an execution without a barrier; a refusal of the disk is not an error."""
        log_record = self._shadow.end(execution_id, canonical(self._responses[execution_id]))
        given = in_pieces(self._responses[execution_id], self._pieces)
        try:
            self._recorders[execution_id].complete(given)
        except OSError as refused:
            if not self._is_long(execution_id):
                raise
            return self._refused(refused, "")
        del self._recorders[execution_id]
        if self._families or self.fault_plan or self._barrier_failed:
            log_record.live = True
        else:
            self._shadow.written(log_record)
        try:
            observed = read_one(self._store, execution_id)
        except OSError as refused:
            return self._refused(refused, "")
        self._shadow.check(execution_id, observed)
        return "completed"

    def _is_long(self, execution_id: str) -> bool:
        """Return whether a part of the execution may be only on the disk.

        A response in pieces moves all log records there, also if it is refused.
        """
        execution = self._shadow.executions[execution_id]
        size_bytes = len(execution.envelope) + _HEADER_BYTES
        size_bytes += sum(
            len(log_record.payload) + _LOG_RECORD_BYTES for log_record in execution.log_records
        )
        return execution_id in self._in_pieces or size_bytes > MOST_BYTES

    def _mark(self, arguments: Arguments) -> str:
        self._meet_faults()
        execution_id = self._open_id(arguments)
        if execution_id in self._responses:
            return "ending"
        log_record = self._shadow.begin(
            execution_id, LogRecordKind.REASON, "the agent is not pure", b""
        )
        try:
            self._recorders[execution_id].mark_not_replayable(log_record.name)
        except EventLost:
            self._shadow.withdraw(execution_id, log_record)
            return "event lost before"
        except (OSError, StorageError) as refused:
            # A refused reason is no lost event: a change of the segment may have made all durable.
            return self._refused(refused, "")
        self._shadow.written(log_record)
        return "marked"

    def _barrier(self, arguments: Arguments) -> str:
        self._meet_faults()
        execution_id = self._open_id(arguments)
        try:
            self._run(self._recorders[execution_id].barrier())
        except (OSError, StorageError) as refused:
            return self._refused(refused, execution_id, late=execution_id)
        self._shadow.barrier(execution_id, self._admitted())
        self._mark_changed_segment()
        return "durable"

    # -- shared by the calls --------------------------------------------------------------

    def _refused(
        self, refused: OSError | StorageError, execution_id: str, *about: str, late: str = ""
    ) -> str:
        """Report a refusal of a call to the shadow; it needs a fault.

        ``execution_id`` is the execution that called the barrier; ``about`` are the executions
        that the call has read. ``late`` is an execution some of whose earlier entries may be in
        doubt because of a fault.
        """
        damaged = [self._shadow.executions[each].damaged for each in about]
        is_late = isinstance(refused, BarrierFailed) and late in self._shadow.doubted
        if isinstance(refused, BarrierFailed):
            self._shadow.fail_barrier(execution_id)
            self._barrier_failed = True
        # The call may have met a failed barrier before the refusal that it reports.
        self._meet_faults()
        if self.fault_plan or self._families or is_late or any(damaged):
            return f"refused: {refused}"
        if isinstance(refused, RecordCorruptedError):
            raise LostAck("a record is damaged, and nothing has damaged it", raised=repr(refused))
        raise FalseAlarm("a call failed, and no fault is on", raised=repr(refused))

    def _meet_faults(self) -> None:
        """Record the faults that the next call may meet."""
        self._families |= damage_of(self.fault_plan)
        if self.fault_plan:
            self._faulty = True
        if self._may_a_barrier_fail:
            self._shadow.disturb()

    @property
    def _may_a_barrier_fail(self) -> bool:
        """Whether a fault is on, or a later barrier may report the error of an earlier fault."""
        return bool(self.fault_plan) or FaultFamily.DELAYED_BARRIER_ERROR in self._families

    def _admitted(self) -> list[str]:
        """Return the disturbed executions whose records show that they have lost an event."""
        if self._may_a_barrier_fail:
            self._shadow.disturb()
        return [each for each in self._shadow.doubted if self._admits(each)]

    def _admits(self, execution_id: str) -> bool:
        try:
            record = read_one(self._store, execution_id)
        except OSError:
            return True
        return record is None or record.reason == FAILURE

    def _mark_changed_segment(self) -> None:
        if self._barrier_failed:
            self.marks.reach(SEGMENT_CHANGED)

    def _propose_one(self, choices: Choices) -> Arguments:
        return {"execution": choices.integer("execution", 0, MOST_EXECUTIONS - 1)}

    def _may_start(self) -> bool:
        is_room = len(self._shadow.executions) < MOST_EXECUTIONS
        return self._open and len(self._recorders) < MOST_OPEN and is_room

    def _has_open(self) -> bool:
        return self._open and bool(self._recorders)

    def _open_id(self, arguments: Arguments) -> str:
        return _nth(list(self._recorders), arguments)

    def _known_id(self, arguments: Arguments) -> str:
        return _nth(list(self._shadow.executions), arguments)

    def _types(self, execution_id: str) -> list[str]:
        log_records = self._shadow.executions[execution_id].log_records
        return [
            log_record.name for log_record in log_records if log_record.kind is LogRecordKind.EVENT
        ]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._world.loop.run_until_complete(work)


def _nth(ids: list[str], arguments: Arguments) -> str:
    return ids[int(str(arguments["execution"])) % len(ids)]
