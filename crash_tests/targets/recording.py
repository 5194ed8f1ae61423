"""Recorder, write-ahead log and record store together, under crashes, faults and damage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from crash_tests.targets.recorder import MOST_BYTES, RecorderTarget
from crash_tests.targets.recording_damage import (
    KINDS,
    RECORD,
    STALE,
    ZERO,
    Damage,
    append_stale_entry,
    damage_record,
    damage_segment,
    is_log_superfluous,
)
from crash_tests.targets.recording_reads import (
    DIRECTORIES,
    check_hashes,
    check_incomplete,
    check_record_files,
    check_replay,
    image_of,
    names_in,
    read_one,
    read_store,
)
from crash_tests.targets.system_target import COMMON_MARKS
from oracles.marks import (
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    POWER_CUT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
    TORN,
    TORN_TAIL_TRUNCATED,
)
from oracles.recording.marks import (
    DAMAGE_CONTAINED,
    RARE_RECORDING_MARKS,
    RECORDING_MARKS,
    marks_of_image,
    stage_mark,
)
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.root_files import check_recovered_names, checkpoint_number
from oracles.recording.violations import UnreportedDamage
from oracles.recording.wal_reader import check_segment
from oracles.violation import FalseAlarm, InvalidState, TornRecord
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily
from sim.choices import Choices
from system.errors import StorageError
from system.ports import Host
from system.recording.open_recording import open_recording
from system.recording.records.errors import RecorderError
from system.recording.replays.replay_cache import CachingReplayEngine, MemoryCache
from system.recording.wal.report import WalReport
from system.recording.wal_store import WalExecutionStore
from system.storage.atomic_file import read_whole

_KINDS: Final = (*KINDS, ZERO, STALE)
"""Kinds of damage; those that only segments have are proposed more often."""

SEGMENT_BYTES: Final = 2_000
"""The size of a segment; so small that a run fills several."""


class RecordingTarget(RecorderTarget):
    """The recording of one root and its shadow.

    Log records may be lost to silent damage. The recovery must report that, and the other log
    records must be right. ``_hit`` is the damage that the target itself has done, whose extent it
    knows.
    """

    families_left_out: Mapping[FaultFamily, str] = MappingProxyType({})
    fault_rules = ("fsync *.wal #1 EIO:ext4", "fsync *.wal #1 EIO:xfs")
    actions_per_crash = 3
    expected_marks: Sequence[str] = (*COMMON_MARKS, *RECORDING_MARKS)
    rare_marks: Sequence[str] = RARE_RECORDING_MARKS

    def __init__(self) -> None:
        super().__init__()
        self.tag = "recording"
        self._losses = 0
        self._recoveries = 0
        self._lasting = False
        self._hit: Damage | None = None
        self._last_number = 0
        self._replays: CachingReplayEngine
        self._report: WalReport

    def actions(self) -> Sequence[ActionKind]:
        """Return the calls of recorders and of the store, checkpoint, read and reopen."""
        return (
            ActionKind("start", 6, self._start, self._propose_start, self._may_start),
            ActionKind("event", 6, self._event, self._propose_event, self._has_open),
            ActionKind("finish", 5, self._finish, self._propose_finish, self._has_open),
            ActionKind("mark", 1, self._mark, self._propose_one, self._has_open),
            ActionKind("barrier", 4, self._barrier, self._propose_one, self._has_open),
            ActionKind("invalidate", 6, self._invalidate, self._propose_one, self._has_records),
            ActionKind("replay", 1, self._replay, self._propose_one, self._has_records),
            ActionKind("checkpoint", 3, self._checkpoint, ready=self._is_open),
            ActionKind("read", 1, self._read, ready=self._is_open),
            ActionKind("reopen", 3, self._reopen, self._propose_reopen),
            ActionKind("damage", 6, self._damage, self._propose_damage, self._may_damage),
        )

    def recover(self, host: Host) -> None:
        """Open the recording, which recovers it."""
        self._host = host
        self._open = False
        self._recoveries += 1
        self._recorders.clear()
        self._responses.clear()
        self._meet_faults()
        # Bytes that two barriers did not make durable are not in a log that a recovery could sync.
        self._lasting |= FaultFamily.DELAYED_BARRIER_ERROR in self._families
        self._barrier_failed = False
        if not self.fault_plan:
            for mark in marks_of_image(image_of(host.files)):
                self.marks.reach(mark)
        self._recording, log = self._run(
            open_recording(host, segment_bytes=SEGMENT_BYTES, most_bytes=MOST_BYTES)
        )
        self._report = log.report
        self._store = WalExecutionStore(self._recording, host.clock)
        self._replays = CachingReplayEngine(self._store, MemoryCache(host.clock))
        self._open = True

    def check_recovered(self) -> None:
        """Check the records, the report and the files of the recovery."""
        try:
            observed = read_store(self._store, self._shadow.executions)
        except OSError:
            if not self.fault_plan:
                raise
            # Nothing can be decided yet: the recording is opened again first.
            self._open = False
            return
        doubtful = not self._shadow.settled
        kept = not self._faulty and self._losses == self._count_losses()
        happened = self._shadow.settle(
            observed, kept=kept, excused=self._excused(), reported=self._is_reported(),
            hidden=bool(self._families),
        )  # fmt: skip
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        self._check_report(doubtful=doubtful or not kept)
        self._losses, self._faulty = self._count_losses(), bool(self.fault_plan)
        self._recoveries = 0
        if self.fault_plan:
            return
        for stage in check_incomplete(self._store, observed):
            self.marks.reach(stage_mark(stage))
        names = {directory: names_in(self._host.files, directory) for directory in DIRECTORIES}
        check_recovered_names(names)
        self._damaged_copies = check_record_files(
            self._host.files, observed, self._excused(), self._damaged_copies,
            is_silent=bool(self._families),
        )  # fmt: skip
        self._last_number = self._checkpoint_number()
        if not self._lasting:
            self._families, self._hit = frozenset(), None

    # -- the store -----------------------------------------------------------------------

    def _invalidate(self, arguments: Arguments) -> str:
        self._meet_faults()
        execution_id = self._known_id(arguments)
        is_running = execution_id in self._recorders
        if not is_running:
            self._shadow.begin_invalidate(execution_id, "wrong answer", "Anna")
        try:
            self._store.invalidate(execution_id, "wrong answer", "Anna")
        except RecorderError as refused:
            if is_running:
                return "running"
            raise FalseAlarm("the execution has ended", raised=repr(refused)) from None
        except (OSError, StorageError) as refused:
            return self._refused(refused, "", execution_id)
        if is_running:
            raise InvalidState("a running execution was invalidated", execution_id=execution_id)
        self._shadow.invalidated(execution_id)
        return "invalidated"

    def _replay(self, arguments: Arguments) -> str:
        self._meet_faults()
        execution_id = self._known_id(arguments)
        operations = self._world.disk.operations
        try:
            record = self._checked(execution_id)
            if record is None:
                return "damaged"
            outcome = check_replay(self._replays, execution_id, record)
        except (OSError, StorageError) as refused:
            return self._refused(refused, "", execution_id)
        if self._world.disk.operations != operations:
            raise InvalidState("a replay has written", execution_id=execution_id)
        return outcome

    def _checkpoint(self, _arguments: Arguments) -> str:
        self._meet_faults()
        try:
            self._run(self._recording.checkpoint())
        except (OSError, StorageError) as refused:
            return self._refused(refused, "")
        self._shadow.checkpoint(self._admitted())
        return "checkpoint"

    def _read(self, _arguments: Arguments) -> str:
        self._meet_faults()
        try:
            ids = list(self._store.list_all())
            for execution_id in sorted({*ids, *self._shadow.executions}):
                self._checked(execution_id)
            if not (self._faulty or self._families):
                check_hashes(self._store, read_store(self._store))
                self._check_segments()
        except (OSError, StorageError) as refused:
            return self._refused(refused, "", *self._shadow.executions)
        return f"{len(ids)} records"

    def _propose_reopen(self, choices: Choices) -> Arguments:
        return {"close": not choices.integer("abandon", 0, 1)}

    def _reopen(self, arguments: Arguments) -> str:
        """Close the recording, or leave it as a kill does, and open it."""
        self._meet_faults()
        try:
            if arguments["close"] and self._open:
                self._recorders.clear()
                self._open = False
                self._run(self._recording.close())
                self._shadow.checkpoint(self._admitted())
            self.recover(self._host)
        except (OSError, StorageError) as refused:
            return self._refused(refused, "")
        self.check_recovered()
        return "reopened"

    def _propose_damage(self, choices: Choices) -> Arguments:
        kind, place = choices.pick("kind", _KINDS), choices.integer("place", 0, 5)
        return {"kind": kind, "place": place}

    def _may_damage(self) -> bool:
        return self._has_records() and not (self.fault_plan or self._families)

    def _damage(self, arguments: Arguments) -> str:
        """Leave the recording as a kill does, damage a file, and open it."""
        files, kind, place = self._host.files, arguments["kind"], int(str(arguments["place"]))
        if self.fault_plan:
            return "no damage besides a fault"
        self._open = False
        # A crash before the recovery may leave the damage or not.
        self._hit = Damage(frozenset(self._shadow.executions), must_be_reported=False)
        hit = None
        if kind == STALE:
            hit = append_stale_entry(files, self._recording.log.last)
        elif kind != RECORD:
            hit = damage_segment(files, str(kind), place, self._checkpoint_number())
        if hit is not None and is_log_superfluous(files):
            hit = hit._replace(must_be_reported=False)
        # Right after a recovery there is no segment.
        self._hit = hit = hit or damage_record(self._host, place)
        self.recover(self._host)
        self.check_recovered()
        if hit is not None and hit.must_be_reported and not self._has_reported():
            raise UnreportedDamage("damage is not reported", damage=hit, report=self._report)
        return "undamaged" if hit is None else "damaged"

    # -- checks ----------------------------------------------------------------------------

    def _checked(self, execution_id: str) -> ObservedRecord | None:
        """Read a record of the running system and compare it with the shadow."""
        record = read_one(self._store, execution_id)
        self._shadow.check(execution_id, record, excused=bool(self._families))
        return record

    def _excused(self) -> Collection[str]:
        """Return the executions that may have lost parts to silent damage."""
        if self._families:
            return list(self._shadow.executions)
        return () if self._hit is None else self._hit.execution_ids

    def _has_reported(self) -> bool:
        report = self._report
        return not report.lost_nothing or bool(report.torn_bytes)

    def _is_reported(self) -> bool:
        """Return whether the recovery has reported a loss, or need not report one.

        The end of a log can be lost without a trace by a misdirected write. An earlier recovery
        may have removed the damage, and crashed before its report.
        """
        traceless = self._families - {FaultFamily.BIT_ROT}
        is_cut = self._hit is not None and not self._hit.must_be_reported
        return self._has_reported() or bool(traceless) or is_cut or self._recoveries > 1

    def _check_report(self, *, doubtful: bool) -> None:
        """Check that the report names no damage without a cause."""
        report, marks = self._report, self.marks
        is_damaged = bool(self._families) or self._hit is not None
        lossy = any(each.lost or each.doubted for each in self._shadow.executions.values())
        if not is_damaged:
            if report.damaged or report.missing or report.findings or report.foreign:
                raise FalseAlarm("recovery reports damage that no crash can do", report=report)
            if report.corrupted and not lossy and not self._faulty:
                raise FalseAlarm("recovery reports a corrupted execution", report=report)
            if report.torn_bytes and not doubtful:
                raise FalseAlarm("recovery reports a torn end of a whole log", report=report)
        if report.torn_bytes:
            marks.reach(TORN_TAIL_TRUNCATED)
        if report.damaged:
            marks.reach(QUARANTINED)
        if report.missing and report.entries:
            marks.reach(DAMAGE_CONTAINED)
        if report.swept:
            marks.reach(STALE_TEMPORARY_SWEPT)

    def _check_segments(self) -> None:
        """Check the segments of an undisturbed lifetime by their format."""
        last = self._last_number
        for name in names_in(self._host.files, "wal"):
            path = f"wal/{name}"
            if name.endswith(".wal"):
                last = check_segment(path, read_whole(self._host.files, path), last)

    def _checkpoint_number(self) -> int:
        try:
            return checkpoint_number(read_whole(self._host.files, "checkpoint"))
        except FileNotFoundError:
            return 0
        except TornRecord:
            if not self._families:
                raise
            return 0

    def _count_losses(self) -> int:
        """Return the number of power cuts that lost or tore operations."""
        return self.marks.count(POWER_CUT_LOST) + self.marks.count(TORN)

    def _is_open(self) -> bool:
        return self._open

    def _has_records(self) -> bool:
        return self._open and bool(self._shadow.executions)


def recording() -> RecordingTarget:
    """Return a new target."""
    return RecordingTarget()
