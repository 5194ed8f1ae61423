"""The whole runtime under crashes and faults: the operator's calls, the agents' work, time.

An action is a call of the operator, a fault of the providers, or the passing of time. The work
of the agents is determined by scripts in messages (``crash_tests.targets.script``). Turns run
beside the actions: the event loop runs as long as an action needs, and unfinished turns wait
for the next action or for a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Final

from crash_tests.targets.false_alarms import is_plausible, is_stopped
from crash_tests.targets.operator import AbandonedCall, OperatorCall
from crash_tests.targets.proposals import (
    propose_advance,
    propose_agent,
    propose_call,
    propose_create,
    propose_provider_fault,
    propose_run,
    propose_send,
)
from crash_tests.targets.runtime_boots import HOUR_NS, SECOND_NS, RuntimeBoots
from crash_tests.targets.script import NAMES
from crash_tests.targets.system_target import COMMON_MARKS
from crash_tests.targets.watched_providers import FEATURES
from oracles.marks import (
    STOPPED_BY_SYNC,
)
from oracles.runtime.marks import (
    CALL_GIVEN_UP,
    RARE_MARKS,
    RUNTIME_MARKS,
)
from oracles.violation import FalseAlarm
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import DAMAGE
from system.errors import LogStopped, RuntimeRefused, StorageError
from system.ports import ProviderError
from system.storage.framing import Framing

_REFUSED: Final = (OSError, StorageError, RuntimeRefused, ProviderError)


class RuntimeTarget(RuntimeBoots):
    """The actions: the operator's calls, faults of the providers, time, and checks."""

    actions_per_crash = 2
    features = FEATURES
    families_left_out = MappingProxyType(
        dict.fromkeys(DAMAGE, "every lost line changes all later work; logs have their own targets")
    )
    expected_marks: Sequence[str] = (*COMMON_MARKS, *RUNTIME_MARKS)
    rare_marks: Sequence[str] = RARE_MARKS
    turn_steps = 1200

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
        taken = {name for name in NAMES if self._runtime.is_taken(name)} | self._abandoned_names
        self._abandoned_under_fault |= self._abandoned and bool(self.fault_plan)
        try:
            result = self._call(call.result(arguments["patience"]))
        except AbandonedCall:
            self.marks.reach(CALL_GIVEN_UP)
            self._abandoned = True
            self._abandoned_under_fault |= bool(self.fault_plan)
            self._abandoned_names |= call.names
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
            self._abandoned_names = frozenset()
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
        self._abandoned_names = frozenset()
        if self.fault_plan or is_stopped(self._runtime):
            self._world.loop.advance(HOUR_NS)
            self._raise_failures()
            return "an hour has passed"
        self._complete_all()
        return "quiet"

    def _has_mail(self) -> bool:
        return bool(self._runtime.view().user)


def runtime() -> RuntimeTarget:
    """Return the runtime with the framing ``framed``."""
    return RuntimeTarget("runtime")


def runtime_pending() -> RuntimeTarget:
    """Return the runtime with the framing ``pending``."""
    target = RuntimeTarget("runtime-pending", Framing.PENDING)
    target.turn_steps //= 2
    return target
