"""The specification of recorder, write-ahead log and record store together, run beside them.

Each execution has its own ``ShadowExecution``. Barriers, failures and the order of losses concern
all of them: the log is one sequence, so if a power cut loses a log record, it loses all later log
records that no barrier has covered. The first complete read after a recovery decides once whether
each doubtful log record has survived; the shadow learns nothing else from the system.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

from oracles.recording.record_reader import FINAL, ObservedRecord
from oracles.recording.shadow_execution import (
    CORRUPTED,
    LogRecord,
    LogRecordKind,
    Safety,
    ShadowExecution,
)
from oracles.recording.violations import UnearnedReplay, UnreportedDamage, WrongReason
from oracles.violation import LogGap, LostAck, Phantom, Resurrected, SilentEmpty, Violation

ObservedRecords = Mapping[str, ObservedRecord | None]
"""Records by id; None for one that the store reports as damaged."""

_SAMPLED_DIGITS: Final = slice(5, 13)


def is_sampled(execution_id: str, rate: float) -> bool:
    """Return whether an execution is recorded at a sample rate."""
    return int(execution_id[_SAMPLED_DIGITS], 16) < rate * 2**32


class ShadowRecording:
    """The executions of one root by id; an execution whose start is under way has no id yet."""

    def __init__(self) -> None:
        self.executions: dict[str, ShadowExecution] = {}
        self._starting: list[ShadowExecution] = []
        self._position = 0

    @property
    def settled(self) -> bool:
        """Whether no crash can lose anything."""
        return not self._starting and all(
            log_record.safety is Safety.DURABLE for _, log_record in self._log_records()
        )

    # -- the calls of recorders ----------------------------------------------------------

    def begin_start(self, envelope: bytes, side_effects: str) -> None:
        """Record that ``start`` was called."""
        execution = ShadowExecution(envelope, side_effects)
        self._add(execution, LogRecordKind.START, "", b"")
        self._starting.append(execution)

    def started(self, execution_id: str, *, sampled: bool = True) -> None:
        """Record that ``start`` has returned this id."""
        execution = self._starting.pop()
        if execution_id in self.executions:
            raise Phantom("an id was given to two executions", execution_id=execution_id)
        if sampled:
            _written(execution.log_records[0])
            self.executions[execution_id] = execution

    def refuse_start(self) -> None:
        """Record that ``start`` has refused its arguments, and recorded nothing."""
        self._starting.pop()

    def begin(self, execution_id: str, kind: LogRecordKind, name: str, payload: bytes) -> LogRecord:
        """Record that a call for a log record of an execution was made; pass it to ``written``."""
        return self._add(self.executions[execution_id], kind, name, payload)

    @property
    def doubted(self) -> list[str]:
        """The executions of which a barrier may have failed although no call has reported it."""
        return [each for each, execution in self.executions.items() if execution.doubted]

    def written(self, log_record: LogRecord) -> None:
        """Record that the call for a log record has returned."""
        _written(log_record)

    def lost(self, execution_id: str) -> None:
        """Record that a call for an event of this execution has failed."""
        self.executions[execution_id].lost = True

    def withdraw(self, execution_id: str, log_record: LogRecord) -> None:
        """Record that the system has refused a log record: it must never appear."""
        self.executions[execution_id].log_records.remove(log_record)

    def end(self, execution_id: str, response: bytes) -> LogRecord:
        """Record that ``finalize`` or ``complete`` was called.

        A repetition after a refusal adds no log record.
        """
        execution = self.executions[execution_id]
        known = execution.response
        return known or self._add(execution, LogRecordKind.FINAL, FINAL, response)

    # -- events of all executions --------------------------------------------------------

    def barrier(self, asking: str = "", admitted: Container[str] = ()) -> None:
        """Record that a barrier has returned.

        Every log record up to the last one of the execution ``asking`` is durable; without
        ``asking``, every log record. Excepted are the log records of ``admitted`` executions, whose
        records show that they have lost events, and those that a failed barrier inside an earlier
        call may have concerned.
        """
        last = self._position if not asking else self.executions[asking].log_records[-1].position
        for execution_id, execution in self.executions.items():
            is_covered = execution_id not in admitted and (not asking or execution_id == asking)
            is_safe = is_covered or not execution.doubted
            for log_record in execution.log_records:
                if log_record.safety is Safety.WRITTEN and log_record.position <= last:
                    log_record.safety = Safety.DURABLE if is_safe else Safety.DOUBTFUL

    def finalized(self, execution_id: str) -> None:
        """Record that ``finalize`` has returned: no crash loses the execution or its response."""
        for log_record in self.executions[execution_id].log_records:
            if log_record.kind in (LogRecordKind.START, LogRecordKind.FINAL):
                log_record.safety = Safety.DURABLE

    def disturb(self) -> None:
        """Record that a barrier inside a call may fail, and the call not report it."""
        for execution, log_record in self._log_records():
            execution.doubted |= log_record.safety is Safety.WRITTEN

    def fail_barrier(self, execution_id: str = "") -> None:
        """Record a failed barrier: no log record after the last successful barrier is safe.

        The execution that called it has lost its events; other executions may have lost theirs.
        """
        asking = self.executions.get(execution_id)
        for execution, log_record in self._log_records():
            if log_record.safety is Safety.WRITTEN:
                log_record.safety = Safety.DOUBTFUL
                log_record.live &= log_record.kind is LogRecordKind.START
                execution.doubted = True
                execution.lost |= execution is asking and log_record.kind is LogRecordKind.EVENT

    def checkpoint(self, admitted: Container[str] = ()) -> None:
        """Record that a checkpoint has returned: losses and responses are durable."""
        self.barrier(admitted=admitted)
        for execution in self.executions.values():
            execution.loss_kept |= execution.lost
            for log_record in execution.log_records:
                if log_record.kind is LogRecordKind.FINAL and log_record.live:
                    log_record.safety = Safety.DURABLE

    def begin_invalidate(self, execution_id: str, reason: str, by: str) -> None:
        """Record that ``invalidate`` was called; a second one changes nothing."""
        invalidated = self.executions[execution_id].invalidated
        if None in invalidated:
            invalidated.append((reason, by))

    def invalidated(self, execution_id: str) -> None:
        """Record that ``invalidate`` has returned: the record is durable and cannot come back."""
        execution = self.executions[execution_id]
        execution.invalidated = [each for each in execution.invalidated if each is not None]
        self.saved(execution_id)

    def saved(self, execution_id: str) -> None:
        """Record that ``save`` has returned: the record is durable."""
        for log_record in self.executions[execution_id].log_records:
            if log_record.live:
                log_record.safety = Safety.DURABLE

    # -- reads ---------------------------------------------------------------------------

    def check(
        self, execution_id: str, record: ObservedRecord | None, *, excused: bool = False
    ) -> None:
        """Compare with a read from the running system; ``record`` is None if it has none.

        With ``excused`` silent damage may have destroyed parts, now and in later reads.
        """
        execution = self.executions.get(execution_id)
        if execution is None:
            if record is not None:
                raise Phantom("a record exists that was never started", record=record)
            return
        if execution.damaged or execution.is_live(record):
            self._check_right(execution_id, execution, record)
            return
        if not excused:
            raise self._violation(execution_id, execution, record)
        execution.damaged = True
        self._check_right(execution_id, execution, record)

    def settle(
        self,
        observed: ObservedRecords,
        *,
        kept: bool,
        excused: Container[str] = (),
        reported: bool = True,
        hidden: bool = False,
    ) -> bool:
        """Compare with the store after a recovery, and decide every doubtful log record.

        ``kept``: no power cut and no fault can have lost log records whose calls had returned. Of
        the ``excused`` executions silent damage may have destroyed anything, if it is ``reported``.
        If it may have ``hidden`` records, that of a start under way may appear later. Returns
        whether a log record that was not acknowledged survived.
        """
        self._adopt(observed, hidden=hidden)
        shown: dict[int, list[LogRecord]] = {}
        # A record that is lost is unreadable if a damaged pack may have it.
        is_damaged = any(execution.damaged for execution in self.executions.values())
        for execution_id, execution in self.executions.items():
            record = observed.get(execution_id)
            log_records = execution.survivors(record, kept=kept)
            if record is None and execution_id in observed and not is_damaged:
                log_records = None
            if log_records is None and not execution.damaged:
                if execution_id not in excused:
                    if not observed and len(self.executions) > 1:
                        raise SilentEmpty("the store is empty", executions=len(self.executions))
                    raise self._violation(execution_id, execution, record)
                if not (reported or _is_corrupted(execution_id, observed)):
                    raise UnreportedDamage(
                        "an execution is damaged, and the recovery does not report it",
                        execution_id=execution_id, log_records=execution.log_records, actual=record,
                    )  # fmt: skip
                execution.damaged = True
            # It may be unreadable through damage, and a power cut can restore its files.
            execution.damaged |= not log_records and execution_id in excused
            if execution.damaged:
                self._check_right(execution_id, execution, record)
                log_records = None
            shown[id(execution)] = execution.log_records if log_records is None else log_records
        self._check_order(shown, excused)
        return self._decide(observed, shown)

    def _adopt(self, observed: ObservedRecords, *, hidden: bool) -> None:
        """Find the ids of the executions whose start was under way."""
        for execution_id, record in observed.items():
            if execution_id in self.executions:
                continue
            for execution in self._starting:
                if record is None or record.envelope == execution.envelope:
                    self._starting.remove(execution)
                    self.executions[execution_id] = execution
                    break
            else:
                raise Phantom("a record exists that was never started", record=record)
        if None not in observed.values() and not hidden:
            # A record that cannot be read now may be that of a start under way.
            self._starting.clear()

    def _check_order(self, shown: Mapping[int, list[LogRecord]], excused: Container[str]) -> None:
        """Check that no log record survived after a lost one, unless a barrier has covered it."""
        lost: LogRecord | None = None
        log_records = [
            (execution, log_record)
            for execution_id, execution in self.executions.items()
            for log_record in execution.log_records
            if log_record.safety is Safety.WRITTEN
            and execution.shows(log_record)
            and not (execution.damaged or execution.doubted or execution_id in excused)
            and len(execution.invalidated) == 1
        ]
        for execution, log_record in sorted(log_records, key=lambda pair: pair[1].position):
            if log_record not in shown[id(execution)]:
                lost = lost or log_record
            elif lost is not None:
                raise LogGap(
                    "a log record survived although one before it did not",
                    lost=lost,
                    kept=log_record,
                )

    def _decide(self, observed: ObservedRecords, shown: Mapping[int, list[LogRecord]]) -> bool:
        happened = False
        for execution_id, execution in list(self.executions.items()):
            record, log_records = observed.get(execution_id), shown[id(execution)]
            happened |= any(log_record.safety is not Safety.DURABLE for log_record in log_records)
            if not log_records:
                del self.executions[execution_id]
                continue
            execution.log_records = log_records
            for log_record in log_records:
                log_record.live = not execution.damaged
                # The record of a damaged execution does not show whether a refused log record
                # survived.
                if log_record.live or log_record.safety is not Safety.DOUBTFUL:
                    log_record.safety = Safety.DURABLE
            execution.ended = True
            if record is not None:
                execution.invalidated = [record.invalidated]
                if record.invalidated is None:
                    execution.decided = frozenset((record.reason,))
        return happened

    def _check_right(
        self, execution_id: str, execution: ShadowExecution, record: ObservedRecord | None
    ) -> None:
        """Check a record of which parts may be missing."""
        if record is not None and execution.is_wrong(record):
            raise self._violation(execution_id, execution, record)

    def _violation(
        self, execution_id: str, execution: ShadowExecution, record: ObservedRecord | None
    ) -> Violation:
        evidence = {
            "execution_id": execution_id,
            "log_records": execution.log_records,
            "actual": record,
        }
        if record is None:
            return LostAck("the record of an execution is gone or damaged", **evidence)
        shown = [(event.type, event.payload) for event in record.events]
        recorded = [
            (log_record.name, log_record.payload)
            for log_record in execution.log_records
            if log_record.kind in (LogRecordKind.EVENT, LogRecordKind.FINAL)
        ]
        if record.envelope != execution.envelope or any(each not in recorded for each in shown):
            return Phantom("a record contains what was never recorded", **evidence)
        if record.invalidated not in execution.invalidated:
            return Resurrected(
                "the invalidation of a record is gone, or is another one",
                expected=execution.invalidated, **evidence,
            )  # fmt: skip
        durable = [
            (log_record.name, log_record.payload)
            for log_record in execution.log_records
            if log_record.kind in (LogRecordKind.EVENT, LogRecordKind.FINAL) and log_record.live
        ]
        if any(each not in shown for each in durable):
            return LostAck("a recorded event is lost", **evidence)
        if record.reason is None:
            return UnearnedReplay("a record is replayable, and must not be", **evidence)
        return WrongReason("a record has another reason than expected", **evidence)

    def _add(
        self, execution: ShadowExecution, kind: LogRecordKind, name: str, payload: bytes
    ) -> LogRecord:
        self._position += 1
        log_record = LogRecord(kind, name, payload, self._position)
        execution.log_records.append(log_record)
        return log_record

    def _log_records(self) -> Iterator[tuple[ShadowExecution, LogRecord]]:
        for execution in self.executions.values():
            for log_record in execution.log_records:
                yield execution, log_record


def _written(log_record: LogRecord) -> None:
    log_record.safety, log_record.live = Safety.WRITTEN, True


def _is_corrupted(execution_id: str, observed: ObservedRecords) -> bool:
    """Return whether the store itself reports that a part of a record is missing through damage."""
    record = observed.get(execution_id)
    return execution_id in observed and (record is None or record.reason == CORRUPTED)
