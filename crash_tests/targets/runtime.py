"""The whole runtime under crashes and faults: the operator's calls, agents' plays, time.

An action is what the operator, the provider or the clock does; what agents do is in the plays
that messages carry. Turns go on beside the actions: the loop runs as long as an action
needs, and what is under way then waits for the next one, or for a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from errno import EIO
from typing import Any, Final, TypeVar

from crash_tests.targets.operator import Asked, GivenUp, Operator
from crash_tests.targets.proposals import (
    propose_advance,
    propose_agent,
    propose_call,
    propose_create,
    propose_provider_fault,
    propose_run,
    propose_send,
)
from crash_tests.targets.refusals import is_plausible, is_stopped
from crash_tests.targets.report import check_report
from crash_tests.targets.schedule import schedule
from crash_tests.targets.script import NAMES
from crash_tests.targets.system_target import COMMON_MARKS, SystemTarget
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
from oracles.runtime.marks import (
    BOUNCED,
    CALL_GIVEN_UP,
    CONTROL_REDONE,
    DEAD_LETTER,
    LOST_TURN_REPORTED,
    NESTED_CRASH_WITH_AGENTS,
    NOTICE_REDONE,
    ORPHAN_REMOVED,
    OUTBOX_REDONE,
    PERMITTED_TURN,
    PROVIDER_FAULT,
    REDELIVERED,
    REMINDER_AFTER_CRASH,
    SPAWN_REDONE,
    STOPPED_SESSION_BACK,
    TERMINATION_FINISHED,
    marks_of_recovery,
    marks_of_run,
)
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.violation import FalseAlarm, Starved
from powercut.fuzz.action import ActionKind, Arguments, Json
from sim.choices import Choices, Diverged, PlainChoices
from sim.errors import PowerOff, SimulatedCrash
from sim.loop.clock import EPOCH_NS
from sim.world import World
from system.agents.view import AgentView, RuntimeView
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

_REFUSED: Final = (OSError, StorageError, RuntimeRefused, ProviderError)


class RuntimeTarget(SystemTarget):
    """One root, its lifetimes, and the shadow of everything that was promised."""

    changed_by_boot = frozenset(("/runtime.lock",))
    actions_per_crash = 2
    features = FEATURES
    expected_marks: Sequence[str] = (
        *COMMON_MARKS,
        NESTED_CRASH_WITH_AGENTS,
        TORN_TAIL_TRUNCATED,
        ACTIVE_SUSPENDED,
        STOPPED_BY_SYNC,
        REDELIVERED,
        DEAD_LETTER,
        BOUNCED,
        SPAWN_REDONE,
        OUTBOX_REDONE,
        CONTROL_REDONE,
        NOTICE_REDONE,
        TERMINATION_FINISHED,
        ORPHAN_REMOVED,
        LOST_TURN_REPORTED,
        PERMITTED_TURN,
        REMINDER_AFTER_CRASH,
        STOPPED_SESSION_BACK,
        PROVIDER_FAULT,
        CALL_GIVEN_UP,
    )
    rare_marks = (
        DEAD_LETTER,
        BOUNCED,
        CONTROL_REDONE,
        NOTICE_REDONE,
        PERMITTED_TURN,
        STOPPED_SESSION_BACK,
    )
    turn_steps = 1200

    def __init__(
        self, tag: str, framing: Framing = Framing.FRAMED, recover: Any = Runtime.recover
    ) -> None:
        self.tag = tag
        turns = ShadowTurns()
        self.providers = WatchedProviders(turns, lambda: self._world.clock.wall_now_ns)
        self._shadow = ShadowRuntime(turns)
        self._framing = framing
        self._boots = 0
        self._stepped = self._met_fault = False
        self._recover = recover
        self._operator = Operator(self._shadow.operator)
        self._awaited: frozenset[str] = frozenset()
        self._world: World[Host]
        self._host: Host
        self._runtime: Runtime
        self._found: RootSnapshot

    def attach(self, world: World[Host]) -> None:
        """Learn the world."""
        self._world = world

    def before_step(self, choices: Choices) -> None:
        """Choose the schedule of this step, and before the first one the ids of the run."""
        if not self._stepped:
            self._stepped = True
            self._world.ids.choose(choices)
        self._world.schedule = schedule(choices)

    def actions(self) -> Sequence[ActionKind]:
        """Return the operator's calls, the passing of time, and what providers do."""
        return (
            ActionKind("create", 4, self._create, propose_create),
            ActionKind("send", 16, self._send, propose_send, self._has_agents),
            ActionKind("run", 6, self._run_on, propose_run, self._has_agents),
            ActionKind("advance", 2, self._advance, propose_advance, self._has_agents),
            ActionKind("terminate", 5, self._terminate, propose_agent, self._has_agents),
            ActionKind("suspend", 2, self._suspend, propose_agent, self._has_agents),
            ActionKind(
                "acknowledge", 1, self._acknowledge, propose_call, lambda: bool(self._view().user)
            ),
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
        self._host = host
        self._found = self._shadow.read(self._files())
        self._boots += 1
        self.providers.boot(self._slots)
        self._met_fault = False
        options = Options(slots=self._slots, framing=self._framing)
        recover = self._recover(host, self.providers.by_name, options)
        try:
            self._runtime = self._world.loop.run_until_complete(recover)
        except (SimulatedCrash, PowerOff):
            if self._found.agents:
                self.marks.reach(NESTED_CRASH_WITH_AGENTS)
            raise
        report = self._runtime.report
        if self.fault_plan and (report.problems or report.unkept or is_stopped(self._runtime)):
            # It goes on with what it has, which is right; but only a whole one can be judged.
            raise OSError(EIO, "a fault has kept the recovery from doing everything")

    @property
    def _slots(self) -> int:
        return SLOTS[(self._boots - 1) % len(SLOTS)]

    def check_recovered(self) -> None:
        """Look at everything that recovery left on the disk; then let the agents run."""
        snapshot = self._read()
        asked = self._shadow.operator.in_flight
        happened = self._shadow.settle(snapshot, self._latest_ns())
        self._mark_recovery(snapshot, happened=happened)
        if asked and not happened:
            self.marks.reach(IN_FLIGHT_LOST)
        self._awaited |= snapshot.active_reminders
        check_report(self._runtime.report)
        self._shadow.check_view(self._view(), snapshot, idle=True)
        self._call(self._started())

    async def _started(self) -> None:
        self._runtime.start()

    def _mark_recovery(self, snapshot: RootSnapshot, *, happened: bool) -> None:
        report = self._runtime.report
        for mark in marks_of_recovery(self._found, snapshot):
            self.marks.reach(mark)
        for found, mark in (
            (report.torn_bytes, TORN_TAIL_TRUNCATED),
            (report.swept, STALE_TEMPORARY_SWEPT),
            (report.suspended, ACTIVE_SUSPENDED),
            (report.damaged, QUARANTINED),
            (happened, IN_FLIGHT_KEPT),
        ):
            if found:
                self.marks.reach(mark)

    def quiesce(self) -> None:
        """Lift everything, and let all accepted work be done."""
        self.providers.clear()
        self._world.schedule = PlainChoices()
        if self._is_stopped():
            # What a barrier has stopped goes on with the next boot.
            self._world.kill()
            self.recover(self._world.boot())
            self.check_recovered()
            self.marks.reach(STOPPED_SESSION_BACK)
        self._be_quiet()
        snapshot = self._read()
        for mark in marks_of_run(snapshot):
            self.marks.reach(mark)
        if self._awaited - snapshot.active_reminders:
            self.marks.reach(REMINDER_AFTER_CRASH)
        if self.providers.has_failed:
            self.marks.reach(PROVIDER_FAULT)

    # -- the operator --------------------------------------------------------------------

    def _create(self, arguments: Arguments) -> str:
        return self._ask(self._operator.create(self._runtime, arguments), arguments)

    def _send(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments).agent_id
        outcome = self._ask(self._operator.send(self._runtime, agent_id, arguments), arguments)
        if outcome == "ack":
            # The turns that it causes begin at once, or wait for another action.
            self._call(self._pass(arguments["then"]))
            self._observe()
        return outcome

    def _terminate(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments).agent_id
        return self._ask(self._operator.terminate(self._runtime, agent_id), arguments)

    def _suspend(self, arguments: Arguments) -> str:
        agent_id = self._chosen(arguments).agent_id
        return self._ask(self._operator.suspend(self._runtime, agent_id), arguments)

    def _acknowledge(self, arguments: Arguments) -> str:
        message_id = self._view().user[0].message_id
        return self._ask(self._operator.acknowledge(self._runtime, message_id), arguments)

    def _ask(self, asked: Asked, arguments: Arguments) -> str:
        taken = [name for name in NAMES if self._runtime.is_taken(name)]
        try:
            answer = self._call(asked.answer(arguments["patience"]))
        except GivenUp:
            self.marks.reach(CALL_GIVEN_UP)
            self._met_fault |= bool(self.fault_plan)
            return "given up"
        except _REFUSED as refused:
            if isinstance(refused, asked.refusals):
                asked.refuse()
            return self._refused(refused, taken)
        asked.acknowledge(answer)
        self._observe()
        return "ack"

    def _refused(self, refused: Exception, taken: Collection[str]) -> str:
        if isinstance(refused, LogStopped):
            self.marks.reach(STOPPED_BY_SYNC)
        # A call that was given up may have met a fault that is over; its repetition hears of it.
        late = self._met_fault and isinstance(refused, OSError | StorageError)
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
        """Let what is ready run: everything, or some steps of it."""
        if arguments["steps"]:
            self._call(self._pass(arguments["steps"]))
        else:
            self._world.loop.run_until_idle()
            self._raise_failures()
        self._observe()
        return "ran"

    async def _pass(self, steps: Json) -> None:
        assert isinstance(steps, int)
        for _ in range(steps):
            await self._world.clock.sleep(0)

    def _advance(self, arguments: Arguments) -> str:
        seconds, back = arguments["seconds"], arguments["back"]
        assert isinstance(seconds, int)
        if back:
            self._world.clock.step_wall(-seconds * SECOND_NS)
            return "stepped back"
        self._world.loop.advance(seconds * SECOND_NS)
        self._raise_failures()
        self._observe()
        return "advanced"

    def _inject_provider_fault(self, arguments: Arguments) -> str:
        count = arguments["count"]
        assert isinstance(count, int)
        self.providers.inject(str(arguments["fault"]), count)
        return "injected"

    def _clear_provider_faults(self, _arguments: Arguments) -> str:
        self.providers.clear()
        return "cleared"

    # -- looking -------------------------------------------------------------------------

    def _check(self, _arguments: Arguments) -> str:
        self._observe()
        snapshot = self._read()
        self._shadow.check(snapshot, self._latest_ns())
        self._shadow.check_view(self._view(), snapshot, idle=False)
        return f"{len(snapshot.agents)} agents"

    def _quiesce(self, _arguments: Arguments) -> str:
        self.providers.clear()
        if self.fault_plan or self._is_stopped():
            self._world.loop.advance(HOUR_NS)
            self._raise_failures()
            return "an hour has passed"
        self._be_quiet()
        return "quiet"

    def _is_stopped(self) -> bool:
        """Whether a barrier has stopped anything; one that has failed may not be heard of yet."""
        self._world.loop.run_until_idle()
        return is_stopped(self._runtime)

    def _be_quiet(self) -> None:
        """Let time pass until nothing moves, and judge that all is done."""
        for _ in range(MOST_ROUNDS):
            done = self._world.disk.operations
            self._world.loop.advance(HOUR_NS)
            if self._world.disk.operations == done:
                break
        self._raise_failures()
        self._observe()
        snapshot = self._read()
        self._shadow.check(snapshot, self._latest_ns())
        self._shadow.check_quiesced(self._view(), snapshot, self._world.clock.wall_ns())
        living = {look.name for look in self._living()}
        kept = [name for name in NAMES if self._runtime.is_taken(name) and name not in living]
        if kept:
            raise Starved("a name is kept for an agent that nothing will create", names=kept)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._world.loop.run_until_complete(work)
        self._raise_failures()
        return result

    def _raise_failures(self) -> None:
        """Raise what something raised that nobody awaits."""
        for failure in self._runtime.failures:
            raise failure
        self._world.loop.raise_unhandled()
        self.providers.check()

    def _observe(self) -> None:
        self._shadow.observe(self._view())

    def _view(self) -> RuntimeView:
        return self._runtime.view()

    def _read(self) -> RootSnapshot:
        self.providers.report()
        return self._shadow.read(self._files())

    def _files(self) -> dict[str, bytes]:
        files = self._world.disk.files()
        return {path[1:]: content for path, content in files.items()}

    def _latest_ns(self) -> int:
        """Return the true time: timers go by it, even when the wall clock was set back."""
        return EPOCH_NS + self._world.clock.now_ns

    def _living(self) -> list[AgentView]:
        return [look for look in self._view().agents if look.alive]

    def _has_agents(self) -> bool:
        return bool(self._living())

    def _chosen(self, arguments: Arguments) -> AgentView:
        place, living = arguments["agent"], self._living()
        assert isinstance(place, int)
        if not living:
            raise Diverged(0, "an agent", "none lives")
        return living[place % len(living)]


def runtime() -> RuntimeTarget:
    """Return the runtime with the framing ``framed``."""
    return RuntimeTarget("runtime")


def runtime_pending() -> RuntimeTarget:
    """Return the runtime with the framing ``pending``."""
    target = RuntimeTarget("runtime-pending", Framing.PENDING)
    target.turn_steps //= 2
    return target
