"""The whole runtime under crashes and faults: the operator's calls, the agents' work, time.

An action is a call of the operator, a fault of the providers, or the passing of time. The work
of the agents is determined by scripts in messages (``crash_tests.targets.script``). Turns run
beside the actions: the event loop runs as long as an action needs, and unfinished turns wait
for the next action or for a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from errno import EIO
from types import MappingProxyType
from typing import Any, Final, TypeVar

from crash_tests.targets.agents_target import AgentsTarget
from crash_tests.targets.false_alarms import check_report, is_plausible, is_stopped
from crash_tests.targets.operator import AbandonedCall, Operator, OperatorCall
from crash_tests.targets.proposals import (
    propose_advance,
    propose_agent,
    propose_call,
    propose_create,
    propose_provider_fault,
    propose_run,
    propose_send,
)
from crash_tests.targets.script import NAMES
from crash_tests.targets.system_target import COMMON_MARKS
from crash_tests.targets.watched_providers import FEATURES, WatchedProviders
from oracles.marks import (
    ACTIVE_SUSPENDED,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
    STOPPED_BY_SYNC,
    TORN_TAIL_TRUNCATED,
)
from oracles.recording.turn_records import check_turn_records
from oracles.runtime.marks import (
    CALL_GIVEN_UP,
    NESTED_CRASH_WITH_AGENTS,
    PROVIDER_FAULT,
    RARE_MARKS,
    REMINDER_AFTER_CRASH,
    RUNTIME_MARKS,
    STOPPED_SESSION_BACK,
    marks_of_recovery,
    marks_of_run,
)
from oracles.runtime.report_laws import check_second_report
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.violation import FalseAlarm, Starved, UnreadableAfterCrash, Violation
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import DAMAGE, damage_of
from powercut.fuzz.run_log import failure_of
from sim.choices import Choices, PlainChoices
from sim.errors import PowerOff, SimulatedCrash
from sim.loop.clock import EPOCH_NS
from system.agents.turn_recorder import RecordingOptions
from system.errors import LogStopped, RuntimeRefused, StorageError
from system.ports import Host, ProviderError
from system.runtime import Options, Runtime
from system.storage.framing import Framing

T = TypeVar("T")

SLOTS: Final = (1, 1, 3)
"""Of each provider, in one boot after the other: agents wait for each other, or overlap."""
SECOND_NS: Final = 1_000_000_000
HOUR_NS: Final = 3600 * SECOND_NS
MOST_ROUNDS: Final = 64
CHANGED_WITH_STATE: Final = frozenset(
    ("/runtime.lock", "/state.db", "/state.db-wal", "/state.db-shm")
)
"""The files that a second recovery may change, with a database."""

_REFUSED: Final = (OSError, StorageError, RuntimeRefused, ProviderError)


class RuntimeTarget(AgentsTarget):
    """One root, its lifetimes, and its shadow.

    ``recover`` recovers a runtime, as ``Runtime.recover`` does. Executions are recorded if
    ``recording`` is given.
    """

    actions_per_crash = 2
    features = FEATURES
    families_left_out = MappingProxyType(
        dict.fromkeys(DAMAGE, "every lost line changes all later work; logs have their own targets")
    )
    expected_marks: Sequence[str] = (*COMMON_MARKS, *RUNTIME_MARKS)
    rare_marks = RARE_MARKS
    turn_steps = 1200

    def __init__(
        self, tag: str, framing: Framing = Framing.FRAMED, recover: Any = Runtime.recover,
        recording: RecordingOptions | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.tag = tag
        turns = ShadowTurns()
        self.providers = WatchedProviders(turns, lambda: self._world.clock.wall_now_ns)
        self._shadow = ShadowRuntime(turns)
        self._framing = framing
        self._recording = recording
        self._boots = 0
        self._stepped = self._abandoned = self._abandoned_under_fault = False
        self._recover = recover
        self._operator = Operator(self._shadow)
        self._awaited: frozenset[str] = frozenset()
        self._found: RootSnapshot

    def before_step(self, choices: Choices) -> None:
        """Choose the schedule of the step, and before the first one the ids of the run."""
        if not self._stepped:
            self._stepped = True
            self._world.ids.choose(choices)
        super().before_step(choices)

    def actions(self) -> Sequence[ActionKind]:
        """Return the operator's calls, the passing of time, and the faults of providers."""
        return (
            ActionKind("create", 4, self._create, propose_create),
            ActionKind("send", 16, self._send, propose_send, self._has_agents),
            ActionKind("run", 6, self._run_on, propose_run, self._has_agents),
            ActionKind("advance", 2, self._advance, propose_advance, self._has_agents),
            ActionKind("terminate", 5, self._terminate, propose_agent, self._has_agents),
            ActionKind("suspend", 2, self._suspend, propose_agent, self._has_agents),
            ActionKind("acknowledge", 1, self._acknowledge, propose_call, self._has_mail),
            ActionKind("check", 1, self._check, ready=self._has_agents),
            ActionKind(
                "inject_provider_fault", 1, self._inject_provider_fault, propose_provider_fault
            ),
            ActionKind(
                "clear_provider_faults", 1, self._clear_provider_faults,
                ready=lambda: self.providers.has_armed,
            ),
            ActionKind("quiesce", 2, self._quiesce, ready=self._has_agents),
        )  # fmt: skip

    # -- lifetimes -----------------------------------------------------------------------

    def recover(self, host: Host) -> None:
        """Recover the root; no turn runs yet."""
        self._found = self._shadow.read(self._files(), self._latest_ns())
        if damage_of(self.fault_plan):
            self._shadow.records.forget()
        self._shadow.check_found(self._found)
        self._boots += 1
        self._shadow.epoch.boot()
        self.providers.boot(self._slots)
        self._abandoned = self._abandoned_under_fault = False
        options = Options(self._slots, self._framing, recording=self._recording, collection=None)
        providers = self.providers.by_name
        try:
            recovery = self._recover(host, providers, options)
            self._runtime = self._world.loop.run_until_complete(recovery)
        except (SimulatedCrash, PowerOff):
            if self._found.agents:
                self.marks.reach(NESTED_CRASH_WITH_AGENTS)
            raise
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
        snapshot = self._read()
        doubtful = bool(self._shadow.operator.in_flight)
        happened = self._shadow.settle(snapshot, self._latest_ns())
        self._mark_recovery(snapshot, happened=happened, lost=doubtful and not happened)
        self._awaited |= snapshot.active_reminders
        check_report(self._runtime.report)
        if not self.fault_plan:
            self._shadow.check_report(self._runtime.report, self._found, snapshot)
            if self._recording is not None:
                check_turn_records(snapshot.files, snapshot.excused)
        self._shadow.check_view(self._runtime.view(), snapshot, idle=True)
        self._call(self._start())

    def check_second_recovery(self) -> None:
        """Check that the report of the last recovery names nothing that had to be done."""
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

    # -- the operator --------------------------------------------------------------------

    def _create(self, arguments: Arguments) -> str:
        return self._make(self._operator.create(self._runtime, arguments), arguments)

    def _send(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments["agent"]).agent_id
        outcome = self._make(self._operator.send(self._runtime, agent_id, arguments), arguments)
        if outcome == "ack":
            # The turns that the message causes begin now, or wait for another action.
            self._call(self._pass(arguments["then"]))
            self._shadow.observe(self._runtime.view())
        return outcome

    def _terminate(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments["agent"]).agent_id
        return self._make(self._operator.terminate(self._runtime, agent_id), arguments)

    def _suspend(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments["agent"]).agent_id
        return self._make(self._operator.suspend(self._runtime, agent_id), arguments)

    def _acknowledge(self, arguments: Arguments) -> str:
        message_id = self._runtime.view().user[0].message_id
        return self._make(self._operator.acknowledge(self._runtime, message_id), arguments)

    def _make(self, call: OperatorCall, arguments: Arguments) -> str:
        taken = [name for name in NAMES if self._runtime.is_taken(name)]
        self._abandoned_under_fault |= self._abandoned and bool(self.fault_plan)
        try:
            result = self._call(call.result(arguments["patience"]))
        except AbandonedCall:
            self.marks.reach(CALL_GIVEN_UP)
            self._abandoned = True
            self._abandoned_under_fault |= bool(self.fault_plan)
            return "abandoned"
        except _REFUSED as refused:
            if isinstance(refused, call.refusals):
                call.refuse()
            return self._refused(refused, taken)
        call.acknowledge(result)
        call.check_record(self._read, result)
        self._shadow.observe(self._runtime.view())
        return "ack"

    def _refused(self, refused: Exception, taken: Collection[str]) -> str:
        if isinstance(refused, LogStopped):
            self.marks.reach(STOPPED_BY_SYNC)
        # The retry of an abandoned call returns its error, also when the fault is lifted now.
        late = self._abandoned_under_fault and isinstance(refused, OSError | StorageError)
        if not (
            self.fault_plan
            or late
            or is_plausible(
                refused, self._runtime, taken, provider_failed=self.providers.has_failed
            )
        ):
            raise FalseAlarm("the runtime refused, and nothing is wrong", raised=repr(refused))
        return f"refused: {type(refused).__name__}"

    # -- time and providers --------------------------------------------------------------

    def _run_on(self, arguments: Arguments) -> str:
        """Run the loop for a number of steps, or until it is idle."""
        self._abandoned_under_fault |= self._abandoned and bool(self.fault_plan)
        if arguments["steps"]:
            self._call(self._pass(arguments["steps"]))
        else:
            self._world.loop.run_until_idle()
            self._raise_failures()
        self._shadow.observe(self._runtime.view())
        return "ran"

    def _advance(self, arguments: Arguments) -> str:
        seconds, back = arguments["seconds"], arguments["back"]
        assert isinstance(seconds, int)
        if back:
            self._world.clock.step_wall(-seconds * SECOND_NS)
            return "stepped back"
        self._world.loop.advance(seconds * SECOND_NS)
        self._raise_failures()
        self._shadow.observe(self._runtime.view())
        return "advanced"

    def _inject_provider_fault(self, arguments: Arguments) -> str:
        count = arguments["count"]
        assert isinstance(count, int)
        self.providers.inject(str(arguments["fault"]), count)
        return "injected"

    def _clear_provider_faults(self, _arguments: Arguments) -> str:
        self.providers.clear()
        return "cleared"

    # -- checks --------------------------------------------------------------------------

    def _check(self, _arguments: Arguments) -> str:
        snapshot = self._checked()
        self._shadow.check_view(self._runtime.view(), snapshot, idle=False)
        return f"{len(snapshot.agents)} agents"

    def _quiesce(self, _arguments: Arguments) -> str:
        self.providers.clear()
        self._world.loop.run_until_idle()
        if self.fault_plan or is_stopped(self._runtime):
            self._world.loop.advance(HOUR_NS)
            self._raise_failures()
            return "an hour has passed"
        self._complete_all()
        return "quiet"

    def _has_mail(self) -> bool:
        return bool(self._runtime.view().user)

    def _complete_all(self) -> None:
        """Let time pass until no operation follows; check that all accepted work is done."""
        for _ in range(MOST_ROUNDS):
            done = self._world.disk.operations
            self._world.loop.advance(HOUR_NS)
            if self._world.disk.operations == done:
                break
        self._raise_failures()
        snapshot = self._checked()
        self._shadow.check_quiesced(self._runtime.view(), snapshot, self._world.clock.wall_ns())
        living = {agent.name for agent in self._living()}
        kept = [name for name in NAMES if self._runtime.is_taken(name) and name not in living]
        if kept:
            raise Starved("a name is taken for an agent that is never created", names=kept)

    def _raise_failures(self) -> None:
        super()._raise_failures()
        self.providers.check()

    def _checked(self) -> RootSnapshot:
        """Check view and logs; return the snapshot of the logs."""
        self._shadow.observe(self._runtime.view())
        snapshot = self._read()
        self._shadow.check(snapshot, self._latest_ns())
        return snapshot

    def _read(self) -> RootSnapshot:
        self.providers.record()
        return self._shadow.read(self._files(), self._latest_ns())

    def _latest_ns(self) -> int:
        """Return the true time; timers follow it even if the wall clock was set back."""
        return EPOCH_NS + self._world.clock.now_ns


def runtime() -> RuntimeTarget:
    """Return the runtime with the framing ``framed``."""
    return RuntimeTarget("runtime")


def runtime_pending() -> RuntimeTarget:
    """Return the runtime with the framing ``pending``."""
    target = RuntimeTarget("runtime-pending", Framing.PENDING)
    target.turn_steps //= 2
    return target
