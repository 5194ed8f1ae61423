"""``state.db`` under crashes and faults: triggers, schedules, tasks and activities."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from crash_tests.rig.effect_ledger import ACTIONS, Answer
from crash_tests.targets.durable_operator import DurableOperator
from crash_tests.targets.durable_store import ROUTER, SECOND_NS
from crash_tests.targets.system_target import COMMON_MARKS
from oracles.durable.marks import COLLECTED, DECIDED, DURABLE_MARKS, RARE_DURABLE_MARKS, SUPERSEDED
from oracles.durable.shadow_durable import DAY_S, STARTED_S
from oracles.durable.shadow_effects import is_final
from oracles.marks import STALE_TEMPORARY_SWEPT
from oracles.violation import InvalidState, Starved
from powercut.fuzz.action import ActionKind, Arguments
from sim.choices import Choices
from system.durable.activity import Activity, Decision, Intent
from system.durable.errors import AlreadyDecided
from system.durable.retention import remove_settled
from system.errors import StorageError

ADVANCES: Final = (1, 40, 130, 4_000, 90_000, 700_000)
MOST_ACTIVITIES: Final = 6
MOST_ROUNDS: Final = 60
PATIENCE_S: Final = 7_200
"""More than all attempts of an activity and their pauses take."""


class DurableTarget(DurableOperator):
    """One database with two sessions; the lines of their turns are kept by the target."""

    actions_per_crash = 2
    expected_marks: Sequence[str] = (
        *(mark for mark in COMMON_MARKS if mark != STALE_TEMPORARY_SWEPT), *DURABLE_MARKS,
    )  # fmt: skip
    rare_marks: Sequence[str] = RARE_DURABLE_MARKS

    def __init__(self) -> None:
        super().__init__()
        self.tag = "durable"

    def actions(self) -> Sequence[ActionKind]:
        """Return the calls of producers, turns, runners and persons, and the steps of clocks."""
        return (
            ActionKind("emit", 8, self._emit, self._propose_emit, self._is_open),
            ActionKind("renew", 16, self._renew, ready=self._has_renewable),
            ActionKind("expire", 2, self._expire, ready=self._has_held_window),
            ActionKind("emit_expired", 12, self._emit_expired, ready=self._has_expired),
            ActionKind("claim", 12, self._claim, self._propose_claim, self._may_claim),
            ActionKind("turn", 8, self._turn, self._propose_turn, self._is_open),
            ActionKind("fail", 12, self._fail, self._propose_fail, self._has_claims),
            ActionKind("late", 2, self._late, ready=self._has_stale),
            ActionKind("repeat", 1, self._repeat, ready=self._is_open),
            ActionKind("advance", 3, self._advance, self._propose_advance),
            ActionKind("step_wall", 1, self._step_wall, self._propose_step),
            ActionKind("step_back", 3, self._step_wall, self._propose_back, self._has_pauses),
            ActionKind("route", 14, self._route, self._propose_session, self._may_route),
            ActionKind("end_session", 1, self._end, self._propose_session, self._may_end),
            ActionKind("end_routed", 9, self._end, self._propose_routed, self._may_end_routed),
            ActionKind("schedule", 3, self._schedule, self._propose_schedule, self._may_schedule),
            ActionKind("change", 1, self._change, self._propose_change, self._has_schedules),
            ActionKind(
                "change_fired", 12, self._change, self._propose_change_fired, self._has_fired
            ),
            ActionKind("pause", 1, self._pause, ready=self._has_running),
            ActionKind("resume", 6, self._resume, ready=self._has_paused),
            ActionKind("outage", 6, self._outage, self._propose_outage, self._has_schedules),
            ActionKind("unschedule", 1, self._unschedule, ready=self._has_schedules),
            ActionKind("perform", 4, self._perform, self._propose_perform, self._is_open),
            ActionKind("decide", 2, self._decide, self._propose_decide, self._has_intents),
            ActionKind("resolve", 2, self._resolve, self._propose_resolve, self._has_stopped),
            ActionKind("collect", 4, self._collect, self._propose_collect, self._is_open),
            ActionKind("reopen", 2, self._reopen),
        )

    # -- time ----------------------------------------------------------------------------

    def _propose_advance(self, choices: Choices) -> Arguments:
        return {"seconds": choices.pick("seconds", ADVANCES)}

    def _advance(self, arguments: Arguments) -> str:
        self._world.clock.advance(int(str(arguments["seconds"])) * SECOND_NS)
        return "later"

    def _propose_step(self, choices: Choices) -> Arguments:
        return {"seconds": choices.pick("step", (-5_000, 5_000, -200_000, 200_000))}

    def _has_pauses(self) -> bool:
        """Whether a trigger waits for the end of a pause, which a wrong clock makes longer."""
        triggers = self._shadow.state.triggers.values()
        return any(each.status == "PENDING" and each.pause is not None for each in triggers)

    def _propose_back(self, _choices: Choices) -> Arguments:
        return {"seconds": -5_000}

    def _step_wall(self, arguments: Arguments) -> str:
        """Set the wall clock; the time of the database does not step back before a boot."""
        seconds = int(str(arguments["seconds"]))
        self._world.clock.step_wall(seconds * SECOND_NS)
        # The system measures the provider's window with a wall clock that is too slow now.
        self._ledger.remembers |= seconds < 0
        return "set"

    # -- activities ----------------------------------------------------------------------

    def _propose_perform(self, choices: Choices) -> Arguments:
        count = choices.integer("answers", 0, 2)
        return {
            # A known activity, or a new one.
            "which": choices.integer("which", 0, min(len(self._shadow.state.intents), 5)),
            "provider": choices.pick("provider", sorted(ACTIONS)),
            "answers": [choices.pick("answer", tuple(Answer)).value for _ in range(count)],
            "callers": choices.integer("callers", 1, 2),
        }

    def _perform(self, arguments: Arguments) -> str:
        """Record an activity, or repeat the call, and perform it from one or two callers."""
        intents, rows = self._shadow.state.intents, self._rows()
        if rows is None:
            return "refused"
        known, which = list(intents), int(str(arguments["which"]))
        if which < len(known):
            key, to = known[which], intents[known[which]][7:-2]
        else:
            self._number += 1
            key, to = f"activity:task:{self._number}", "Anna"
        action = str(
            rows.activities[key]["action"] if key in rows.activities else arguments["provider"]
        )
        intent = Intent(key, ACTIONS[action], {"to": to})
        intended = self._do(
            lambda transaction: self._stores.activities.intend(transaction, intent),
            self._shadow.state.intended(key, f'{{"to":"{to}"}}'),
        )
        if intended is None:
            return "refused"
        answers = arguments["answers"]
        assert isinstance(answers, Sequence)
        self._plan_answers([str(each) for each in answers])
        return self._perform_keys([key] * int(str(arguments["callers"])))

    def _perform_keys(self, keys: Sequence[str]) -> str:
        """Perform activities concurrently."""
        runner = self._runner()

        async def perform() -> list[Activity]:
            async with asyncio.timeout(PATIENCE_S):
                return list(await asyncio.gather(*(runner.perform(key) for key in keys)))

        try:
            performed = self._run(perform())
        except TimeoutError:
            if not self.fault_plan:
                raise Starved("an activity is never decided", keys=keys) from None
            # The disk has refused the outcome; the next boot decides.
            self._open = False
            return "abandoned"
        except StorageError as refused:
            self._refuse(refused)
            # Attempts that the database has refused leave no trace; the next boot decides.
            self._open = False
            return "refused"
        self._acknowledge()
        return ", ".join(activity.status for activity in performed)

    def _undecided(self) -> list[str]:
        rows = self._rows()
        if rows is None:
            return []
        return [
            key
            for key, row in rows.activities.items()
            if row["status"] in ("UNCERTAIN", "FAILED") and row["decided_by"] is None
        ]

    def _has_intents(self) -> bool:
        return self._open and bool(self._shadow.state.intents)

    def _propose_decide(self, choices: Choices) -> Arguments:
        return {
            "which": choices.integer("which", 0, MOST_ACTIVITIES - 1),
            "decision": choices.pick("decision", tuple(Decision)).value,
        }

    def _decide(self, arguments: Arguments) -> str:
        """Make the decision of a person about an activity."""
        undecided = self._undecided()
        if not undecided:
            return "nothing is undecided"
        key = undecided[int(str(arguments["which"])) % len(undecided)]
        decision = Decision(str(arguments["decision"]))
        status = "INTENT" if decision is Decision.AGAIN else decision.value
        ledger = self._ledger
        self._effects.decide(key, status, ledger.effects[key], ledger.requests[key])
        resolve = self._stores.activities.resolve
        decided = self._do(
            lambda transaction: resolve(transaction, key, decision, "Bob"), self._shadow.state
        )
        if decided is None:
            return "refused"
        self.marks.reach(DECIDED)
        try:
            self._do(
                lambda transaction: resolve(transaction, key, decision, "Eve"), self._shadow.state
            )
        except AlreadyDecided:
            self._shadow.refuse()
            return decision.value
        if self._open and not self.fault_plan:
            raise InvalidState("an activity was decided twice", key=key)
        return decision.value

    # -- the end of rows, and boots ------------------------------------------------------

    def _propose_collect(self, choices: Choices) -> Arguments:
        return {"after": choices.pick("after", (0, 90_000))}

    def _collect(self, arguments: Arguments) -> str:
        """Remove settled rows, at once or when those of today are old enough."""
        self._world.clock.advance(int(str(arguments["after"])) * SECOND_NS)
        rows = self._rows()
        if rows is None:
            return "refused"
        # A program may repeat the call of its own activity at any time.
        of_turns = {key for key, row in rows.activities.items() if row["session_id"] is not None}
        settled = [key for key in of_turns if is_final(rows.activities[key])]
        self._shadow.begin(self._shadow.state)
        old_keys = of_turns.intersection(
            self._effects.settled_before(self._now() - DAY_S - STARTED_S)
        )
        self._shadow.begin_collect(self._now(), settled)
        try:
            removed = self._state.transact(remove_settled)
        except StorageError as refused:
            self._refuse(refused)
            return "refused"
        rows = self._rows()
        if rows is None:
            self._shadow.return_unread()
            return "removed"
        self._shadow.acknowledge_collect(rows, old_keys)
        self._check_effects(rows)
        if removed:
            self.marks.reach(COLLECTED)
        return f"{removed} removed"

    def _may_claim(self) -> bool:
        return self._open and bool(self._free_sessions())

    def _has_claims(self) -> bool:
        return self._open and bool(self._claims)

    def check_recovered(self) -> None:
        """Check the rows, and reach the marks of superseded ones."""
        super().check_recovered()
        triggers = self._shadow.state.triggers.values()
        if any(each.resolution == "superseded" for each in triggers):
            self.marks.reach(SUPERSEDED)

    # -- quiesce -------------------------------------------------------------------------

    def quiesce(self) -> None:
        """Claim and settle everything that is due, and perform every activity."""
        self._reopen({})
        self._plan_answers([])
        for schedule_id in self._living():
            assert schedule_id
            self._unschedule({})
        sessions = self._sessions.living
        for _ in range(MOST_ROUNDS):
            outcomes = [self._claim({"session": each}) for each in (*sessions, ROUTER)]
            if ROUTER in self._claims:
                self._route({"session": sessions[0]})
            for session in sessions:
                if session in self._claims:
                    self._turn({"session": session, "emits": "", "checkpoint": 0, "activity": 0})
            if set(outcomes) == {"nothing is due"}:
                break
            self._world.clock.advance(SECOND_NS)
        else:
            raise Starved("due triggers are never settled")
        rows = self._rows()
        assert rows is not None
        self._perform_keys(
            [key for key, row in rows.activities.items() if row["status"] == "INTENT"]
        )
        rows = self._rows()
        assert rows is not None
        self._effects.check_performed(rows, self._ledger.effects)


def durable() -> DurableTarget:
    """Return a new target."""
    return DurableTarget()
