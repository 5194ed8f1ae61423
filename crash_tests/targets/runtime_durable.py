"""The runtime with triggers: emitted by the operator, run in turns, under crashes and faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.targets.operator import OperatorCall, plain
from crash_tests.targets.proposals import propose_call
from crash_tests.targets.runtime import RuntimeTarget
from crash_tests.targets.runtime_boots import SECOND_NS
from crash_tests.targets.script import propose_script
from oracles.runtime.marks import TRIGGER_MARKS, TRIGGER_RECLAIMED
from oracles.runtime.root_snapshot import RootSnapshot
from powercut.fuzz.action import ActionKind, Arguments
from sim.choices import Choices
from system.durable.trigger import TriggerSpec

_PLACES: Final = 7
_DELAYS: Final = (0, 0, 0, 1, 90, 3000)


def propose_emit(choices: Choices) -> Arguments:
    """Choose a trigger, its time, and the agent that gets it; or a repetition of the last one."""
    return {
        "agent": choices.integer("agent", 0, _PLACES),
        "routed": choices.integer("routed", 0, 5) == 5,
        "again": choices.integer("again", 0, 7) == 7,
        "delay": choices.pick("delay", _DELAYS),
        "payload": propose_script(choices),
        "then": choices.pick("then", (0, 8, 60, 60)),
        **propose_call(choices),
    }


class DurableRuntimeTarget(RuntimeTarget):
    """The runtime, whose operator also emits triggers."""

    expected_marks: Sequence[str] = (*RuntimeTarget.expected_marks, *TRIGGER_MARKS)

    def __init__(self) -> None:
        super().__init__("runtime-durable")
        self._specs: list[TriggerSpec] = []

    def actions(self) -> Sequence[ActionKind]:
        """Return the actions of the runtime, and ``emit``."""
        emit = ActionKind("emit", 12, self._emit, propose_emit, self._has_agents)
        return (*super().actions(), emit)

    def _emit(self, arguments: Arguments) -> str:
        if not (arguments["again"] and self._specs):
            delay = arguments["delay"]
            assert isinstance(delay, int)
            session_id = self._chosen(arguments["agent"]).session_id
            self._specs.append(
                TriggerSpec(
                    "IMMEDIATE", plain(arguments["payload"]),
                    session_id=None if arguments["routed"] else session_id,
                    fire_at=self._world.clock.wall_ns() // SECOND_NS + delay,
                )
            )  # fmt: skip
        trigger_id, spec = f"trigger-{len(self._specs)}", self._specs[-1]
        assert spec.fire_at is not None
        self._shadow.records.expect_triggers()
        self._work.shadow.triggers.begin(trigger_id, spec.session_id, spec.payload, spec.fire_at)
        call = OperatorCall(
            lambda: self._runtime.emit(spec, trigger_id),
            lambda _: self._work.shadow.triggers.acknowledge(trigger_id),
            lambda: self._work.shadow.triggers.refuse(trigger_id),
        )
        outcome = self._make(call, arguments)
        if outcome == "ack":
            self._call(self._pass(arguments["then"]))
        return outcome

    def _mark_recovery(self, snapshot: RootSnapshot, *, happened: bool, lost: bool) -> None:
        super()._mark_recovery(snapshot, happened=happened, lost=lost)
        if self._runtime.report.reclaimed:
            self.marks.reach(TRIGGER_RECLAIMED)


def runtime_durable() -> DurableRuntimeTarget:
    """Return the runtime with triggers."""
    return DurableRuntimeTarget()
