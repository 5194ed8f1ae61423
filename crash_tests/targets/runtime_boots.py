"""The boots of the runtime targets: recovery, the checks after it, and quiesce.

The actions are in ``crash_tests.targets.runtime``.
"""

from __future__ import annotations

from collections.abc import Collection
from errno import EIO
from typing import Any, Final

import apsw

from crash_tests.targets.agents_target import AgentsTarget
from crash_tests.targets.false_alarms import check_report, is_stopped
from crash_tests.targets.operator import Operator
from crash_tests.targets.runtime_work import ObservedWork, RuntimeWork
from crash_tests.targets.script import NAMES
from crash_tests.targets.watched_providers import WatchedProviders
from oracles.marks import (
    ACTIVE_SUSPENDED,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
    TORN_TAIL_TRUNCATED,
)
from oracles.recording.turn_records import check_turn_records
from oracles.runtime.marks import (
    NESTED_CRASH_WITH_AGENTS,
    PROVIDER_FAULT,
    REMINDER_AFTER_CRASH,
    STOPPED_SESSION_BACK,
    TRIGGER_AFTER_CRASH,
    marks_of_recovery,
    marks_of_run,
)
from oracles.runtime.report_laws import check_second_report
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.shadow_work import ShadowWork
from oracles.violation import Starved, UnreadableAfterCrash, Violation
from powercut.fuzz.fault_families import damage_of
from powercut.fuzz.run_log import failure_of
from sim.choices import Choices, PlainChoices
from sim.errors import PowerOff, SimulatedCrash
from sim.loop.clock import EPOCH_NS
from system.agents.turn_recorder import RecordingOptions
from system.ports import Host
from system.runtime import Options, Runtime
from system.storage.framing import Framing

SLOTS: Final = (1, 1, 3)
"""The slots of each provider, by boot: with few of them agents wait, with more they overlap."""
SECOND_NS: Final = 1_000_000_000
HOUR_NS: Final = 3600 * SECOND_NS
MOST_ROUNDS: Final = 64


class RuntimeBoots(AgentsTarget):
    """One root, its lifetimes, and its shadow.

    ``recover`` recovers a runtime, as ``Runtime.recover`` does. Executions are recorded if
    ``recording`` is given.
    """

    def __init__(
        self, tag: str, framing: Framing = Framing.FRAMED, recover: Any = Runtime.recover,
        recording: RecordingOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.tag = tag
        turns = ShadowTurns()
        self.providers = WatchedProviders(turns, self._call_ns)
        self._shadow = ShadowRuntime(turns)
        self._framing = framing
        self._recording = recording
        self._boots = 0
        self._stepped = self._abandoned = self._abandoned_under_fault = False
        # Names that an abandoned creation may take and give up again at any moment.
        self._abandoned_names: frozenset[str] = frozenset()
        self._recover = recover
        self._operator = Operator(self._shadow)
        self._awaited: frozenset[str] = frozenset()
        self._offset_ns = 0
        self._is_time_known = True
        self._work = RuntimeWork(ShadowWork())
        self._host: Host
        self._found: RootSnapshot

    def before_step(self, choices: Choices) -> None:
        """Choose the schedule of the step, and before the first one the ids of the run."""
        if not self._stepped:
            self._stepped = True
            self._world.ids.choose(choices)
        super().before_step(choices)

    # -- lifetimes -----------------------------------------------------------------------

    def recover(self, host: Host) -> None:
        """Recover the root; no turn runs yet."""
        self._host = host
        self._found = self._shadow.read(self._files(), self._latest_ns())
        if damage_of(self.fault_plan):
            self._shadow.records.forget()
        self._shadow.check_found(self._found)
        self._boots += 1
        self._shadow.epoch.boot()
        self.providers.boot(self._slots)
        self._offset_ns = offset_ns = self._clock_offset_ns()
        self._abandoned = self._abandoned_under_fault = False
        self._abandoned_names = frozenset()
        options = Options(self._slots, self._framing, recording=self._recording, collection=None)
        providers = self.providers.by_name
        try:
            recovery = self._recover(host, providers, options)
            self._runtime = self._world.loop.run_until_complete(recovery)
        except (SimulatedCrash, PowerOff):
            if self._found.agents:
                self.marks.reach(NESTED_CRASH_WITH_AGENTS)
            raise
        # A fault may have set the clock back before or after the runtime has read it.
        self._is_time_known = self._clock_offset_ns() == offset_ns
        self._offset_ns = min(offset_ns, self._clock_offset_ns())
        report = self._runtime.report
        incomplete = report.problems or report.undispatched or is_stopped(self._runtime)
        if self.fault_plan and incomplete:
            # A partial recovery is right under a fault, but only a complete one can be checked.
            raise OSError(EIO, "a fault has made the recovery incomplete")

    @property
    def _slots(self) -> int:
        return SLOTS[(self._boots - 1) % len(SLOTS)]

    def check_recovered(self) -> None:
        """Check the recovered root; then start the turns."""
        observed = self._observed_work()
        snapshot = self._read().with_ended(_ended(observed))
        doubtful = bool(self._shadow.operator.in_flight)
        faulty = bool(self.fault_plan)
        happened = self._shadow.settle(snapshot, self._latest_ns(), faulty=faulty)
        self._mark_recovery(snapshot, happened=happened, lost=doubtful and not happened)
        if observed is not None:
            self._work.settle(snapshot, observed, self._latest_ns(), self._now_ns())
        self._awaited |= snapshot.active_reminders
        check_report(self._runtime.report)
        if not self.fault_plan:
            self._shadow.check_report(self._runtime.report, self._found, snapshot)
            if self._recording is not None:
                check_turn_records(snapshot.files, snapshot.excused)
        self._shadow.check_view(self._runtime.view(), snapshot, idle=True)
        self._call(self._start())

    def check_second_recovery(self) -> None:
        """Check that the last recovery, according to its report, had nothing to do."""
        check_second_report(self._runtime.report, self._read())

    def _mark_recovery(self, snapshot: RootSnapshot, *, happened: bool, lost: bool) -> None:
        report = self._runtime.report
        for mark in marks_of_recovery(self._found, snapshot):
            self.marks.reach(mark)
        for found, mark in (
            (report.torn_bytes, TORN_TAIL_TRUNCATED),
            (report.swept, STALE_TEMPORARY_SWEPT),
            (report.suspended, ACTIVE_SUSPENDED),
            (report.damaged, QUARANTINED),
            (happened, IN_FLIGHT_KEPT),
            (lost, IN_FLIGHT_LOST),
        ):
            if found:
                self.marks.reach(mark)

    def quiesce(self) -> None:
        """Clear all faults, complete all accepted work, and check the result."""
        self.providers.clear()
        self._world.schedule = PlainChoices()
        self._world.loop.run_until_idle()  # a task may still have to receive an error
        if is_stopped(self._runtime):
            # A failed barrier has stopped a part of the runtime until the next boot.
            self._world.kill()
            self._boot_again()
            self.marks.reach(STOPPED_SESSION_BACK)
        self._complete_all()
        snapshot = self._read()
        for mark in marks_of_run(snapshot):
            self.marks.reach(mark)
        if self._awaited - snapshot.active_reminders:
            self.marks.reach(REMINDER_AFTER_CRASH)
        if self.providers.has_failed:
            self.marks.reach(PROVIDER_FAULT)

    def _boot_again(self) -> None:
        host = self._world.boot()
        failure = failure_of(lambda: self.recover(host))
        if isinstance(failure, Violation):
            raise failure
        if failure is not None:
            raise UnreadableAfterCrash(
                "recovery fails, and no fault is in force", raised=repr(failure)
            )
        self.check_recovered()

    # -- checks ------------------------------------------------------------------------

    def _complete_all(self) -> None:
        """Let time pass until no operation follows; check that all accepted work is done."""
        for _ in range(MOST_ROUNDS):
            self._end_schedules()
            done = self._world.disk.operations
            self._world.loop.advance(HOUR_NS)
            if self._world.disk.operations == done:
                break
        self._raise_failures()
        snapshot = self._checked()
        self._shadow.check_quiesced(self._runtime.view(), snapshot, self._now_ns())
        observed = self._observed_work()
        assert observed is not None
        settled = self._work.check_quiesced(snapshot, observed, self._now_ns(), self._is_unfit)
        if self._boots > 1 and settled:
            self.marks.reach(TRIGGER_AFTER_CRASH)
        living = {agent.name for agent in self._living()}
        kept = [name for name in NAMES if self._runtime.is_taken(name) and name not in living]
        if kept:
            raise Starved("a name is taken for an agent that is never created", names=kept)

    def _end_schedules(self) -> None:
        """End all schedules, which would emit triggers for ever."""

    def _raise_failures(self) -> None:
        super()._raise_failures()
        self.providers.check()

    def _checked(self) -> RootSnapshot:
        """Check view, logs and rows; return the snapshot of the logs."""
        observed = self._observed_work()
        self._shadow.observe(self._runtime.view())
        snapshot = self._read().with_ended(_ended(observed))
        self._shadow.check(snapshot, self._latest_ns())
        if observed is not None:
            self._work.check(snapshot, observed, self._latest_ns(), self._now_ns())
        return snapshot

    def _observed_work(self) -> ObservedWork | None:
        """Return the rows of this moment; None if a fault prevents the read."""
        if self._runtime.view().state_stopped:
            return None
        try:
            return self._work.observe(self._host)
        except apsw.Error:
            if self.fault_plan:
                return None
            raise

    def _is_unfit(self, trigger_id: str) -> bool:
        """Return whether a trigger without a session waits for other candidates."""
        del trigger_id
        return len([agent for agent in self._living() if agent.parent_id is None]) > 1

    def _read(self) -> RootSnapshot:
        self.providers.record()
        return self._shadow.read(self._files(), self._latest_ns())

    def _now_ns(self) -> int:
        """Return the time that the runtime uses, which does not step back during a boot."""
        clock = self._world.clock
        return max(clock.now_ns + self._offset_ns, clock.wall_now_ns)

    def _call_ns(self) -> int | None:
        """Return the time of a call by the clock of the runtime; None if that is not known."""
        return self._now_ns() if self._is_time_known else None

    def _clock_offset_ns(self) -> int:
        return self._world.clock.wall_now_ns - self._world.clock.now_ns

    def _latest_ns(self) -> int:
        """Return the true time; timers follow it even if the wall clock was set back."""
        return EPOCH_NS + self._world.clock.now_ns


def _ended(observed: ObservedWork | None) -> Collection[str] | None:
    """Return the sessions whose agents were collected; None if the rows could not be read."""
    return None if observed is None else observed.rows.ended
