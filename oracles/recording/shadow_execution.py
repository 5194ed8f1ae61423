"""The specification of one execution: its log records, and those that a crash may leave of it.

A log record is the start, an event, a reason of ``mark_not_replayable``, or the final response. It
survives every crash once a barrier has covered it, and a kill once its call has returned. A log
record whose call failed, or is under way, may survive or not (docs/recording.md, The recorder).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import product
from typing import Final

from oracles.recording.record_reader import ObservedRecord

INCOMPLETE: Final = "execution_incomplete"
FAILURE: Final = "recording_failure"
CORRUPTED: Final = "record_corrupted"
INVALIDATED: Final = "manually_invalidated"


class LogRecordKind(Enum):
    """The kinds of log record."""

    START = auto()
    EVENT = auto()
    REASON = auto()
    FINAL = auto()


class Safety(Enum):
    """Where a log record is: perhaps nowhere, in the page cache, on the disk."""

    DOUBTFUL = auto()
    WRITTEN = auto()
    DURABLE = auto()


@dataclass(slots=True, eq=False)
class LogRecord:
    """One log record; ``name`` is the type of an event, or the reason.

    ``position`` counts the log records of all executions in the order of their calls. ``live`` is
    set if a running system must show the log record.
    """

    kind: LogRecordKind
    name: str
    payload: bytes
    position: int
    safety: Safety = Safety.DOUBTFUL
    live: bool = False


@dataclass(slots=True)
class ShadowExecution:
    """One execution; ``log_records`` are in the order of their calls.

    ``lost`` is set when an event could not be written, ``loss_kept`` when the reason that says so
    is durable, ``doubted`` when a barrier of another execution has failed. ``decided`` is empty, or
    has the one reason that the first read after a crash has shown. ``invalidated`` has the reason
    and the author of each invalidation that may be in force, and None for no invalidation; if it
    has one element, that one is acknowledged. ``damaged`` is set when a fault has destroyed a part
    of the record: then missing parts are no violations, and wrong parts are.
    """

    envelope: bytes
    side_effects: str
    log_records: list[LogRecord] = field(default_factory=list)
    lost: bool = False
    loss_kept: bool = False
    doubted: bool = False
    ended: bool = False
    decided: frozenset[str | None] = frozenset()
    invalidated: list[tuple[str, str] | None] = field(default_factory=lambda: [None])
    damaged: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether a running system must show a final response."""
        return self.response is not None and self.response.live

    @property
    def response(self) -> LogRecord | None:
        """The final response that was finalized, if there is one."""
        return next(
            (
                log_record
                for log_record in self.log_records
                if log_record.kind is LogRecordKind.FINAL
            ),
            None,
        )

    def shows(self, log_record: LogRecord) -> bool:
        """Return whether a record shows if ``log_record`` survived.

        It does not for a reason that repeats an earlier one, nor if the loss of an event is the
        reason.
        """
        if log_record.kind is not LogRecordKind.REASON:
            return True
        reasons = (each for each in self.log_records if each.kind is LogRecordKind.REASON)
        first = next(each for each in reasons if each.name == log_record.name)
        return first is log_record and not self.lost

    def survivors(self, record: ObservedRecord | None, *, kept: bool) -> list[LogRecord] | None:
        """Return the log records that a record shows; None if no crash can leave that record.

        ``record`` is None if the execution is missing in the store. With ``kept`` every log record
        whose call has returned must be in it.
        """
        required = {Safety.DURABLE, Safety.WRITTEN} if kept else {Safety.DURABLE}
        if record is None:
            # If the start is lost, there is no record, whatever followed it.
            return None if self.log_records[0].safety in required else []
        if record.envelope != self.envelope or record.side_effects != self.side_effects:
            return None
        for log_records in self._candidates(required):
            if self._is_shown(log_records, record):
                return log_records
        return None

    def is_live(self, record: ObservedRecord | None) -> bool:
        """Return whether a running system may show this record."""
        if record is None:
            return not any(log_record.live for log_record in self.log_records)
        return any(
            self._is_shown(log_records, record, live=True)
            for log_records in self._candidates({Safety.DURABLE, Safety.WRITTEN})
            if all(log_record in log_records for log_record in self.log_records if log_record.live)
        )

    def is_wrong(self, record: ObservedRecord) -> bool:
        """Return whether a record contains anything that was never recorded, or conceals a loss.

        Such a record is a violation for damaged executions too.
        """
        if record.envelope != self.envelope:
            return True
        recorded = [(log_record.name, log_record.payload) for log_record in self._events()]
        remaining = iter(recorded)
        shown = [(event.type, event.payload) for event in record.events]
        if not all(event in remaining for event in shown):
            return True
        # A reason whose call was refused is not set.
        has_reason = any(
            log_record.kind is LogRecordKind.REASON and log_record.safety is not Safety.DOUBTFUL
            for log_record in self.log_records
        )
        return record.reason is None and (shown != recorded or has_reason)

    def _events(self) -> Iterator[LogRecord]:
        """Yield the events and the final response."""
        return (
            log_record
            for log_record in self.log_records
            if log_record.kind in (LogRecordKind.EVENT, LogRecordKind.FINAL)
        )

    def _candidates(self, required: set[Safety]) -> Iterator[list[LogRecord]]:
        """Yield every set that may survive: a prefix of the written log records, any doubtful ones.

        If a barrier has failed inside a call, its segment is abandoned: events in it may be lost,
        and reasons in the next segment survive.
        """
        durable = [
            log_record for log_record in self.log_records if log_record.safety is Safety.DURABLE
        ]
        written = [
            log_record for log_record in self.log_records if log_record.safety is Safety.WRITTEN
        ]
        doubtful = [
            log_record for log_record in self.log_records if log_record.safety is Safety.DOUBTFUL
        ]
        least = len(written) if Safety.WRITTEN in required else 0
        for size in range(len(written), least - 1, -1):
            later = [
                log_record
                for log_record in written[size:]
                if log_record.kind is LogRecordKind.REASON
            ]
            possible = [*doubtful, *later] if self.doubted else doubtful
            for present in product((True, False), repeat=len(possible)):
                chosen = [
                    log_record
                    for log_record, is_there in zip(possible, present, strict=True)
                    if is_there
                ]
                kept = set(map(id, (*durable, *written[:size], *chosen)))
                log_records = [
                    log_record for log_record in self.log_records if id(log_record) in kept
                ]
                if log_records and log_records[0].kind is LogRecordKind.START:
                    yield log_records

    def _is_shown(
        self, log_records: Sequence[LogRecord], record: ObservedRecord, *, live: bool = False
    ) -> bool:
        kinds = (LogRecordKind.EVENT, LogRecordKind.FINAL)
        expected = [
            (log_record.name, log_record.payload)
            for log_record in log_records
            if log_record.kind in kinds
        ]
        if [(event.type, event.payload) for event in record.events] != expected:
            return False
        if record.invalidated not in self.invalidated:
            return False
        if record.invalidated is not None:
            return record.reason == INVALIDATED
        return record.reason in self._reasons(log_records, live=live)

    def _reasons(self, log_records: Sequence[LogRecord], *, live: bool) -> AbstractSet[str | None]:
        """Return the reasons that a record of these log records may have."""
        if self.decided:
            return self.decided
        marks = [
            log_record.name for log_record in log_records if log_record.kind is LogRecordKind.REASON
        ]
        has_final = log_records[-1].kind is LogRecordKind.FINAL
        base = marks[-1] if marks else None if has_final else INCOMPLETE
        if self._has_gap(log_records):
            return {FAILURE, CORRUPTED, *marks[-1:]}
        if self.loss_kept or (self.lost and live):
            return {FAILURE, *marks[-1:]}
        return {FAILURE, base} if self.lost or self.doubted else {base}

    def _has_gap(self, log_records: Sequence[LogRecord]) -> bool:
        """Return whether an event is missing before one of the log records."""
        last = log_records[-1].position
        return any(
            log_record.kind is LogRecordKind.EVENT
            and log_record.position < last
            and log_record not in log_records
            for log_record in self.log_records
        )
