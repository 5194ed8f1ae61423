"""The event log under crashes and faults, in both framings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from crash_tests.targets.system_target import COMMON_MARKS, SystemTarget
from oracles.marks import (
    DAMAGE_READ,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    LINES_MISSING,
    PENDING_REJECTED,
    PENDING_REPLAYED,
    POWER_CUT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
    STOPPED_BY_SYNC,
    TORN,
    TORN_TAIL_TRUNCATED,
)
from oracles.shadow_log import Excused, ShadowLog
from oracles.shadow_quarantine import ShadowQuarantine
from oracles.violation import FalseAlarm, Garbage
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily, damage_of
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.errors import LogDamaged, LogStopped, StorageError
from system.ports import Host, Json, JsonObject
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.log_report import LogReport, PendingVerdict

SESSION: Final = "5e551011c0ffee00decaf000000000ff"
DIRECTORY: Final = f"agents/{SESSION}"
PATH: Final = f"{DIRECTORY}/events.jsonl"
MOST_LINES: Final = 3
MOST_UNSYNCED: Final = 2
EVENTS: Final = ("turn.start", "turn.complete", "message.enqueued", "agent.created")


_KNOWN: Final = re.compile(r"events\.jsonl(\.quarantine\.\d+)?|events\.pending\.quarantine\.\d+")


class Entry(NamedTuple):
    """The event and data of one line; a number in the data makes each entry of a run unique."""

    event: str
    data: JsonObject


class EventLogTarget(SystemTarget):
    """One log and its shadow.

    Acknowledged lines may be lost to silent damage. The next recoveries must report that, and
    the remaining lines must be right; after the first recovery without a fault, no loss is
    excused.
    """

    families_left_out: Mapping[FaultFamily, str] = MappingProxyType({})
    actions_per_crash = 2
    # A read of damaged lines is rare, and a run is short.
    turn_steps = 1200
    expected_marks: Sequence[str] = (
        *COMMON_MARKS,
        TORN_TAIL_TRUNCATED,
        QUARANTINED,
        STOPPED_BY_SYNC,
        DAMAGE_READ,
        LINES_MISSING,
    )

    def __init__(self, tag: str, framing: Framing) -> None:
        self.tag = tag
        self._framing = framing
        self._shadow: ShadowLog[Entry] = ShadowLog()
        self._quarantine = ShadowQuarantine()
        self._written = 0
        self._open = False
        self._stopped = False
        self._losses = 0
        self._damage: frozenset[FaultFamily] = frozenset()
        self._recoveries = 0
        self._lasting = False
        self._missing: Collection[tuple[int, int]] = ()
        self._faulty = False
        self._host: Host
        self._log: EventLog

    def actions(self) -> Sequence[ActionKind]:
        """Return append, append unsynced, read, reopen and park."""
        return (
            ActionKind("append", 8, self._append, self._propose_append, lambda: self._open),
            ActionKind(
                "append_unsynced",
                3,
                self._append_unsynced,
                self._propose_unsynced,
                lambda: self._open,
            ),
            ActionKind("read", 1, self._read, ready=lambda: self._open),
            ActionKind("reopen", 1, self._reopen),
            ActionKind("park", 1, self._park, ready=lambda: self._open),
        )  # fmt: skip

    def recover(self, host: Host) -> None:
        """Open the log, which recovers it."""
        self._host = host
        if not self.fault_plan:
            self._quarantine.check(self._content)
        delayed = self._damage & damage_of(self.fault_plan) & {FaultFamily.DELAYED_BARRIER_ERROR}
        # A line that two barriers in a row did not make durable counts as durable from then on.
        self._lasting |= bool(delayed)
        self._meet_faults()
        self._recoveries += 1
        self._open = self._stopped = False
        self._log = EventLog.open(host, PATH, SESSION, self._framing)
        self._open = True

    def check_recovered(self) -> None:
        """Check the lines, the report and the files of the recovery."""
        doubtful = not self._shadow.settled
        actual = [Entry(line.event, line.data) for line in self._log.recovered]
        unsynced_kept = not self._faulty and self._losses == self._count_losses()
        report = self._log.report
        happened = self._shadow.settle(
            actual, unsynced_kept=unsynced_kept, excused=self._excused(report)
        )
        self._losses, self._faulty = self._count_losses(), False
        # A file that is put aside has one barrier, so no later one reports that it has failed.
        is_late = FaultFamily.DELAYED_BARRIER_ERROR in self._damage
        if not (self.fault_plan or is_late):
            moved = [damage.quarantine for damage in report.damaged]
            self._quarantine.keep(moved, self._content)
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        self._check_report(report, doubtful=doubtful)
        self._missing = report.missing
        self._recoveries = 0
        if not (self.fault_plan or self._lasting):
            self._damage = frozenset()
        self._check_files()
        self._read({})

    # -- actions -----------------------------------------------------------------------

    def _propose_append(self, choices: Choices) -> Arguments:
        return _propose_lines(choices, MOST_LINES)

    def _propose_unsynced(self, choices: Choices) -> Arguments:
        return _propose_lines(choices, MOST_UNSYNCED)

    def _append(self, arguments: Arguments) -> str:
        entries = self._begin(arguments)
        try:
            if len(entries) == 1:
                self._log.append(*entries[0])
            else:
                self._log.append_all(entries)
        except (OSError, StorageError) as refused:
            return self._not_written(refused)
        self._shadow.acknowledge()
        return "ack"

    def _append_unsynced(self, arguments: Arguments) -> str:
        entries = self._begin(arguments)
        try:
            self._log.append_unsynced(entries)
        except (OSError, StorageError) as refused:
            return self._not_written(refused)
        self._shadow.acknowledge_unsynced()
        return "written"

    def _park(self, _arguments: Arguments) -> str:
        self._meet_faults()
        try:
            self._log.park()
        except LogStopped as refused:
            if not self._stopped:
                self._shadow.stop()
            return self._refused(refused)
        self._shadow.acknowledge()
        return "parked"

    def _begin(self, arguments: Arguments) -> list[Entry]:
        """Return the entries of an append, which are in flight for the shadow from now on."""
        self._meet_faults()
        entries = []
        for line_text in _texts(arguments):
            self._written += 1
            data: JsonObject = {"number": self._written, "text": str(line_text)}
            entries.append(Entry(str(arguments["event"]), data))
        self._shadow.begin(*entries)
        return entries

    def _not_written(self, refused: OSError | StorageError) -> str:
        """Report a refusal to the shadow; only a log that has stopped may have the lines."""
        if isinstance(refused, LogStopped) and not self._stopped:
            self._shadow.stop()
        else:
            self._shadow.refuse(misplaced=FaultFamily.MISDIRECTED_WRITE in self._damage)
        return self._refused(refused)

    def _refused(self, refused: OSError | StorageError) -> str:
        is_late = FaultFamily.DELAYED_BARRIER_ERROR in self._damage
        if not (self.fault_plan or self._stopped or is_late):
            raise FalseAlarm("a call failed, and no fault is on", raised=repr(refused))
        if isinstance(refused, LogStopped):
            self._stopped = True
            self.marks.reach(STOPPED_BY_SYNC)
        return f"refused: {refused}"

    def _read(self, _arguments: Arguments) -> str:
        try:
            actual = self._entries()
        except OSError as refused:
            if not (self.fault_plan or self._damage):
                raise
            return f"refused: {refused}"
        except LogDamaged as refused:
            if not (self._damage or damage_of(self.fault_plan)):
                raise
            self.marks.reach(DAMAGE_READ)
            return f"refused: {refused}"
        self._shadow.check(actual)
        return f"{len(actual)} lines"

    def _reopen(self, _arguments: Arguments) -> str:
        try:
            if self._open:
                # A log is closed even if ``close`` raises.
                self._open = False
                self._log.close()
            self.recover(self._host)
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self.check_recovered()
        return "reopened"

    # -- checks ------------------------------------------------------------------------

    def _meet_faults(self) -> None:
        """Record the faults that the next call may meet."""
        self._faulty |= bool(self.fault_plan)
        self._damage |= damage_of(self.fault_plan)

    def _excused(self, report: LogReport) -> Excused:
        """Return the acknowledged lines that may be missing after this recovery."""
        if not self._damage:
            return Excused.NONE
        if report.damaged or report.missing or report.torn_bytes:
            return Excused.ANY
        if self._recoveries > 1:
            # An earlier recovery may have removed the damage, and crashed before its report.
            return Excused.ANY
        # A write that was lost behind a barrier leaves no trace at the end of the file.
        delayed = FaultFamily.DELAYED_BARRIER_ERROR in self._damage
        return Excused.LAST if delayed else Excused.NONE

    def _content(self, path: str) -> bytes:
        return self._host.files.read(path)[0]

    def _entries(self) -> list[Entry]:
        return [Entry(line.event, line.data) for line in self._log.lines()]

    def _count_losses(self) -> int:
        """Return the number of power cuts that lost or tore operations.

        Without one, unsynced lines survive a crash.
        """
        return self.marks.count(POWER_CUT_LOST) + self.marks.count(TORN)

    def _check_files(self) -> None:
        """Check that the directory contains only the log and its quarantine files."""
        for name in self._host.files.listdir(DIRECTORY):
            if not _KNOWN.fullmatch(name):
                raise Garbage("a file is left that is never read", name=name)

    def _check_report(self, report: LogReport, *, doubtful: bool) -> None:
        """Check that the report names no damage of durable lines."""
        marks = self.marks
        new_gap = any(gap not in self._missing for gap in report.missing)
        if not self._damage and (new_gap or any(not damage.tail for damage in report.damaged)):
            raise FalseAlarm("recovery reports damage that no crash can do", report=report)
        if report.damaged and not (doubtful or self._damage):
            raise FalseAlarm("recovery reports damage, and nothing was in flight", report=report)
        if report.damaged:
            marks.reach(QUARANTINED)
        if report.missing:
            marks.reach(LINES_MISSING)
        if report.torn_bytes:
            marks.reach(TORN_TAIL_TRUNCATED)
        if report.swept:
            marks.reach(STALE_TEMPORARY_SWEPT)
        match report.pending:
            case PendingVerdict.REPLAYED:
                marks.reach(PENDING_REPLAYED)
            case PendingVerdict.STALE | PendingVerdict.TORN:
                marks.reach(PENDING_REJECTED)
            case PendingVerdict.AHEAD | PendingVerdict.ABSENT:
                pass


def _propose_lines(choices: Choices, most: int) -> Arguments:
    """Propose 1 to ``most`` lines of one event."""
    event, first = choices.pick("event", EVENTS), text(choices)
    more: list[Json] = [text(choices) for _ in range(choices.integer("more lines", 0, most - 1))]
    return {"event": event, "text": first, "more": more}


def _texts(arguments: Arguments) -> list[Json]:
    more = arguments.get("more", [])
    assert isinstance(more, list)
    return [arguments["text"], *more]


def framed() -> EventLogTarget:
    """Return the event log with the framing ``framed``."""
    return EventLogTarget("event-log-framed", Framing.FRAMED)


def pending() -> EventLogTarget:
    """Return the event log with the framing ``pending``."""
    target = EventLogTarget("event-log-pending", Framing.PENDING)
    pending_marks = (PENDING_REPLAYED, PENDING_REJECTED)
    target.expected_marks = (*target.expected_marks, *pending_marks)
    return target
