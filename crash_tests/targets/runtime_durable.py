"""The runtime with durable work: triggers, reminders, schedules, tasks, activities, a router.

The operator emits and decides; agents call the tools for durable work; actions are performed
in an outside world that survives every crash and judges the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from crash_tests.rig.effect_ledger import Answer, EffectLedger
from crash_tests.rig.provider_ledger import ProviderFault
from crash_tests.rig.router import Choice, SimulatedRouter
from crash_tests.targets.durable_calls import (
    DurableCalls,
    propose_answers,
    propose_decide,
    propose_emit,
    propose_perform,
    propose_resolve,
    stopped_triggers,
    undecided_activities,
)
from crash_tests.targets.proposals import propose_send
from crash_tests.targets.runtime import RuntimeTarget
from crash_tests.targets.runtime_boots import SECOND_NS
from crash_tests.targets.runtime_segments import recovering
from crash_tests.targets.runtime_work import RuntimeWork
from crash_tests.targets.script import DURABLE_TOOLS
from oracles.durable.marks import CRASHED_EFFECT, DEAD_BY_RECLAIM, DECIDED
from oracles.durable.rows import NO_ROWS, Rows
from oracles.runtime.marks import (
    RARE_WORK_MARKS,
    SPAWN_REDONE,
    TRIGGER_MARKS,
    TRIGGER_RECLAIMED,
    WORK_MARKS,
)
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_work import ShadowWork
from oracles.runtime.work_marks import marks_of_work
from powercut.fuzz.action import ActionKind, Arguments
from sim.choices import Choices
from system.durable.errors import UnknownSchedule
from system.errors import Closed
from system.ports import Host

MOST_ATTEMPTS: Final = 2
_WEIGHTS: Final = {"advance": 6, "inject_provider_fault": 4, "run": 8}
"""A trigger is DEAD when its turns have failed, and time has passed between them."""
_OUTAGES: Final = (4_000, 40_000, 100_000)
_OUTCOME_FAULTS: Final = (ProviderFault.BROKEN.value, ProviderFault.LOST.value)
"""Faults that fail a turn at once, so that a message is soon a dead letter."""


class DurableRuntimeTarget(RuntimeTarget):
    """The runtime, whose agents and operator also work through ``state.db``."""

    expected_marks: Sequence[str] = (*RuntimeTarget.expected_marks, *TRIGGER_MARKS, *WORK_MARKS)
    rare_marks: Sequence[str] = (
        *RuntimeTarget.rare_marks, *RARE_WORK_MARKS, CRASHED_EFFECT, DEAD_BY_RECLAIM, SPAWN_REDONE,
    )  # fmt: skip

    def __init__(self) -> None:
        self._router = SimulatedRouter()
        self._ledger = EffectLedger(self._now_ns)
        super().__init__(
            "runtime-durable", recover=recovering(router=self._router, most_attempts=MOST_ATTEMPTS)
        )
        self._work = RuntimeWork(ShadowWork(MOST_ATTEMPTS), self._ledger)
        self._calls = DurableCalls(self._work.shadow)
        self._outage = 0
        self._had_fault = False

    def actions(self) -> Sequence[ActionKind]:
        """Return the actions of the runtime, and those about durable work."""
        inherited = [
            replace(each, weight=_WEIGHTS.get(each.name, each.weight))
            for each in super().actions()
            if each.name != "send"
        ]
        return (
            *inherited,
            ActionKind("send", 16, self._send, _propose_send, self._has_agents),
            ActionKind("emit", 10, self._emit, propose_emit, self._has_agents),
            ActionKind("perform", 3, self._perform, propose_perform),
            ActionKind("answers", 8, self._plan_answers, propose_answers),
            ActionKind("decide", 8, self._decide, propose_decide),
            ActionKind("resolve", 3, self._resolve, propose_resolve),
            ActionKind("outage", 4, self._plan_outage, _propose_outage),
            ActionKind("fail_outcome", 4, self._plan_outcome_fault, _propose_outcome_fault),
        )

    # -- lifetimes -----------------------------------------------------------------------

    def recover(self, host: Host) -> None:
        """Recover the root, perhaps a long time after the last lifetime has ended."""
        self._world.clock.advance(self._outage * SECOND_NS)
        self._outage = 0
        self._had_fault = bool(self.fault_plan)
        self._shadow.records.expect_triggers()
        super().recover(replace(host, effects=self._ledger))

    def before_step(self, choices: Choices) -> None:
        """Forget an outage: only a crash of its own step makes it."""
        super().before_step(choices)
        self._outage = 0

    def _plan_outage(self, arguments: Arguments) -> str:
        """Let the next boot come late, if it follows at once.

        Settled rows may be removed meanwhile: they must have been seen before.
        """
        if self.fault_plan:
            return "not seen"
        self._checked()
        seconds = arguments["seconds"]
        assert isinstance(seconds, int)
        self._outage = seconds
        return "planned"

    def _advance(self, arguments: Arguments) -> str:
        if not self.fault_plan:
            # As before an outage.
            self._checked()
        return super()._advance(arguments)

    def _complete_all(self) -> None:
        self._ledger.answers.clear()
        self._ledger.on_request = None
        self._router.answers.clear()
        super()._complete_all()
        for mark in marks_of_work(self._rows(), self._ledger.requests):
            self.marks.reach(mark)

    def _end_schedules(self) -> None:
        for schedule_id, row in self._rows().schedules.items():
            if row["ended_at"] is None:
                self._end_schedule(schedule_id)
        self._checked()

    def _end_schedule(self, schedule_id: str) -> None:
        try:
            self._call(self._runtime.schedules.delete(schedule_id))
        except UnknownSchedule:
            # A turn, or its last occurrence, may have ended it since.
            if self._rows().schedules[schedule_id]["ended_at"] is None:
                raise

    def _is_unfit(self, trigger_id: str) -> bool:
        roots = [agent.agent_id for agent in self._living() if agent.parent_id is None]
        return self._router.unfit.get(trigger_id) == frozenset(roots)

    def _mark_recovery(self, snapshot: RootSnapshot, *, happened: bool, lost: bool) -> None:
        super()._mark_recovery(snapshot, happened=happened, lost=lost)
        rows, report, unrecorded = self._rows(), self._runtime.report, self._ledger.unanswered
        if any(
            row["status"] != "DONE" and key in unrecorded for key, row in rows.activities.items()
        ):
            self.marks.reach(CRASHED_EFFECT)
        unrecorded.clear()
        dead = {row["id"] for row in rows.triggers if row["status"] == "DEAD"}
        if report.reclaimed:
            self.marks.reach(TRIGGER_RECLAIMED)
        if dead.intersection(report.reclaimed):
            self.marks.reach(DEAD_BY_RECLAIM)
        for mark in marks_of_work(rows, self._ledger.requests, report):
            self.marks.reach(mark)

    # -- the operator --------------------------------------------------------------------

    def _emit(self, arguments: Arguments) -> str:
        session_id = self._chosen(arguments["agent"]).session_id
        now = self._now_ns() // SECOND_NS
        call = self._calls.emit(self._runtime, arguments, session_id, now)
        outcome = self._make(call, arguments)
        if outcome == "ack":
            self._call(self._pass(arguments["then"]))
        return outcome

    def _perform(self, arguments: Arguments) -> str:
        return self._make(self._calls.perform(self._runtime, arguments), arguments)

    def _refused(self, refused: Exception, taken: Collection[str]) -> str:
        if isinstance(refused, Closed) and self._had_fault:
            # A fault has kept an outcome from its record; the next boot decides.
            return "refused: Closed"
        return super()._refused(refused, taken)

    def _raise_failures(self) -> None:
        super()._raise_failures()
        self._had_fault |= bool(self.fault_plan)

    def _plan_answers(self, arguments: Arguments) -> str:
        effects, router = arguments["effects"], arguments["router"]
        assert isinstance(effects, Sequence)
        assert isinstance(router, Sequence)
        self._ledger.answers[:] = [Answer(str(each)) for each in effects]
        self._router.answers[:] = [Choice(str(each)) for each in router]
        return "planned"

    def _plan_outcome_fault(self, arguments: Arguments) -> str:
        """Inject a fault of the providers when the next action is performed.

        So the turn that asks for the action is committed, and those that present its outcome fail.
        """
        self._ledger.on_request = lambda: self._inject_provider_fault(arguments)
        return "planned"

    def _decide(self, arguments: Arguments) -> str:
        undecided = undecided_activities(self._rows())
        if not undecided:
            return "nothing is undecided"
        row = undecided[_place(arguments) % len(undecided)]
        effects, requests = (
            each[row["idem_key"]] for each in (self._ledger.effects, self._ledger.requests)
        )
        self.marks.reach(DECIDED)
        return self._make(
            self._calls.decide(self._runtime, arguments, row, effects, requests), arguments
        )

    def _resolve(self, arguments: Arguments) -> str:
        stopped = stopped_triggers(self._rows())
        if not stopped:
            return "nothing has stopped"
        row = stopped[_place(arguments) % len(stopped)]
        return self._make(self._calls.resolve(self._runtime, arguments, row), arguments)

    def _rows(self) -> Rows:
        """Return the rows of this moment; none if they cannot be read."""
        observed = self._observed_work()
        return NO_ROWS if observed is None else observed.rows


def _place(arguments: Arguments) -> int:
    which = arguments["which"]
    assert isinstance(which, int)
    return which


def _propose_send(choices: Choices) -> Arguments:
    return propose_send(choices, DURABLE_TOOLS)


def _propose_outage(choices: Choices) -> Arguments:
    return {"seconds": choices.pick("seconds", _OUTAGES)}


def _propose_outcome_fault(choices: Choices) -> Arguments:
    return {"fault": choices.pick("outcome fault", _OUTCOME_FAULTS), "count": 6}


def runtime_durable() -> DurableRuntimeTarget:
    """Return the runtime with durable work."""
    return DurableRuntimeTarget()
