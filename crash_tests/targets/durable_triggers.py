"""Triggers and schedules, for the target of durable execution: emit, claim, turn, fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from crash_tests.rig.effect_ledger import ACTIONS
from crash_tests.targets.durable_store import MOST_ATTEMPTS, ROUTER, DurableStore
from oracles.durable.marks import (
    DEAD_BY_FAILURE,
    FENCED_OFF,
    KEY_FREE_AGAIN,
    KEY_HELD,
    LINE_NOT_REPEATED,
    OCCURRENCE_SKIPPED,
    OCCURRENCES_MISSED,
    ROUTED,
    ROUTED_AGAIN,
    SESSION_ENDED,
)
from oracles.durable.shadow_schedules import claimed
from oracles.durable.shadow_sessions import session_ended
from oracles.durable.shadow_state import ExpectedTrigger, State
from oracles.durable.violations import (
    EarlyTrigger,
    RepeatedTrigger,
    StaleSettlement,
    SuppressedTrigger,
    WrongOrder,
)
from oracles.violation import InvalidState, Starved
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.activity import Intent
from system.durable.errors import FencedOff, UnknownTrigger
from system.durable.seconds import reached_at
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.task import Checkpoint, TaskStatus
from system.durable.trigger import Claim, Emitted, TriggerSource, TriggerSpec
from system.errors import StorageError

KINDS: Final = ("plain", "skill", "memory", "immediate", "reminder")
ROUTABLE: Final = ("plain", "skill", "immediate")
DELAYS: Final = (0, 60, 4_000, -100_000)
SLOTS: Final = 2
MOST_ENDED: Final = 3
_SOURCES: Final = {
    "plain": ("IMMEDIATE", 10), "skill": ("SKILL_WORKFLOW", 60), "memory": ("MEMORY", 50),
    "immediate": ("IMMEDIATE", 10), "reminder": ("SCHEDULED", 20), "resume": ("RESUME", 5),
}  # fmt: skip
_STATUSES: Final = (TaskStatus.ACTIVE, TaskStatus.WAITING, TaskStatus.DONE)


class DurableTriggers(DurableStore):
    """The calls of turns and of producers."""

    # -- emit ----------------------------------------------------------------------------

    def _propose_emit(self, choices: Choices) -> Arguments:
        kind = choices.pick("kind", KINDS)
        router = (ROUTER,) if kind in ROUTABLE else ()
        return {
            "kind": kind,
            "session": choices.pick("session", (*self._sessions.living, *router)),
            "slot": choices.integer("slot", 0, SLOTS - 1),
            "delay": choices.pick("delay", DELAYS),
            "again": choices.integer("again", 0, 3) == 3,
        }

    def _emit(self, arguments: Arguments) -> str:
        """Emit a trigger; one without a key gets an id of the caller, which may be taken."""
        kind, session = str(arguments["kind"]), str(arguments["session"])
        plain = [name for name, known in self._shadow.ids.items() if name == known]
        if kind == "plain" and arguments["again"] and plain:
            return self._emit_again(plain[-1], session)
        name, spec, expected = self._new(kind, session, int(str(arguments["slot"])))
        fire_at = self._now() + int(str(arguments["delay"]))
        spec, expected = spec._replace(fire_at=fire_at), replace(expected, fire_at=fire_at)
        now, state = self._now(), self._shadow.state
        holder = state.holder(spec.key, now)
        if holder != state.holder(spec.key, now + 1):
            return "at the end of its key"
        after = state if holder is not None else state.emitted(name, expected, now)
        if spec.key in state.keys and holder is None:
            self.marks.reach(KEY_FREE_AGAIN)
        emitted = self._do(
            lambda transaction: self._stores.emitter.emit(
                transaction, spec, name if spec.key is None else None
            ),
            after,
        )
        return "refused" if emitted is None else self._check_emitted(emitted, name, holder)

    def _emit_again(self, name: str, session: str) -> str:
        if name not in self._shadow.state.triggers:
            return "removed"
        spec = TriggerSpec("IMMEDIATE", "another", session_id=session or None)
        emitted = self._do(
            lambda transaction: self._stores.emitter.emit(transaction, spec, name),
            self._shadow.state,
        )
        return "refused" if emitted is None else self._check_emitted(emitted, "", name)

    def _check_emitted(self, emitted: Emitted, name: str, holder: str | None) -> str:
        if holder is None:
            if not emitted.created:
                raise SuppressedTrigger("a trigger was not emitted", key_holder=emitted.trigger_id)
            if self._shadow.settled and self._shadow.ids[name] != emitted.trigger_id:
                raise InvalidState("emit returned another id", returned=emitted.trigger_id)
            return "emitted"
        if emitted.created:
            raise RepeatedTrigger("a taken key was emitted again", holder=holder)
        if self._shadow.ids[holder] != emitted.trigger_id:
            raise InvalidState("emit returned another holder", expected=holder, actual=emitted)
        self.marks.reach(KEY_HELD)
        return "held"

    def _new(self, kind: str, session: str, slot: int) -> tuple[str, TriggerSpec, ExpectedTrigger]:
        """Return the name of a new trigger, its specification, and its expected row."""
        self._number += 1
        source, priority = _SOURCES[kind]
        key = {
            "plain": None, "skill": f"skill:w:{slot}", "memory": f"memory:{session}:{slot}",
            "immediate": f"immediate:{slot}", "reminder": f"reminder:{self._number}",
            "resume": f"resume:task-{session}",
        }[kind]  # fmt: skip
        name, payload = f"t{self._number}", {"n": self._number}
        about = f"about {name}"
        spec = TriggerSpec(source, dict(payload), about, session or None, key=key)
        expected = ExpectedTrigger(
            key, session or None, 0.0, priority, f'{{"n":{self._number}}}', description=about
        )
        return name, spec, expected

    # -- claim ---------------------------------------------------------------------------

    def _free_sessions(self) -> list[str]:
        return [each for each in (*self._sessions.living, ROUTER) if each not in self._claims]

    def _propose_claim(self, choices: Choices) -> Arguments:
        free, now = self._free_sessions(), self._now()
        triggers = self._shadow.state.open_triggers()
        due = {each.session or ROUTER for each in triggers if each.due_by(now)}
        return {"session": choices.pick("session", [*filter(due.__contains__, free)] or free)}

    def _claim(self, arguments: Arguments) -> str:
        """Claim the first due trigger of a session, or the first one to be routed."""
        session, before = str(arguments["session"]), self._now()
        if session in self._claims:
            return "claimed already"
        state = self._shadow.state
        surely = {
            name: each
            for name, each in state.triggers.items()
            if each.session == (session or None)
            and each.status == "PENDING"
            and each.due_by(before)
        }
        found = self._stores.queue.next_of(session or None, reached_at(self._clock.now_ns()))
        if found is None:
            if surely:
                raise Starved("a due trigger is not offered", expected=sorted(surely))
            return "nothing is due"
        name = self._shadow.name_of(found)
        trigger = state.triggers[name]
        rank = _due_at(trigger) + trigger.priority
        for other, each in surely.items():
            if _due_at(each) + each.priority < rank - 0.001:
                raise WrongOrder("another trigger comes first", expected=other, actual=name)
        later = self._now() + 1
        after = [claimed(state, name, now) for now in (before, later)]
        claim = self._do(
            lambda transaction: self._stores.triggers.claim(transaction, found), *after
        )
        if claim is None:
            now_there = self._shadow.state.triggers[name]
            if self._shadow.settled and now_there.resolution == "skipped":
                self.marks.reach(OCCURRENCE_SKIPPED)
                return "skipped"
            if self.fault_plan:
                return "refused"
            raise InvalidState("a due trigger was not claimed", name=name)
        return self._claimed(session, claim, trigger)

    def _claimed(self, session: str, claim: Claim, trigger: ExpectedTrigger) -> str:
        if _due_at(trigger) > self._now():
            raise EarlyTrigger("a trigger was claimed before its time", expected=trigger)
        if claim.trigger.missed:
            self.marks.reach(OCCURRENCES_MISSED)
        self._claims[session] = claim
        return "claimed"

    # -- turns ---------------------------------------------------------------------------

    def _propose_turn(self, choices: Choices) -> Arguments:
        return {
            "session": choices.pick("session", self._sessions.living),
            "emits": choices.pick("emits", ("", "resume", "plain", "memory")),
            "checkpoint": choices.integer("checkpoint", 0, 3),
            "activity": choices.integer("activity", 0, 2),
        }

    def _turn(self, arguments: Arguments) -> str:
        """Write a line that settles the claim of a session, and carry it out."""
        session = str(arguments["session"])
        claim = self._claims.get(session)
        self._seqs[session] += 1
        outbox = StateOutbox(session, self._seqs[session])
        state, now = self._shadow.state, self._now()
        if claim is not None:
            outbox = replace(outbox, trigger_id=claim.trigger.id)
            state = state.settled(self._shadow.name_of(claim.trigger.id), "handled", now)
        outbox, state = self._outbox_of(arguments, outbox, state, now)
        # The line is durable from here on, also if the database fails.
        self._lines[session] = outbox
        self._claims.pop(session, None)
        self._shadow.begin(state, certain=True)
        try:
            self._run(self._state.run(lambda transaction: self._stores.apply(transaction, outbox)))
        except StorageError as refused:
            self._refuse_line(refused, state)
            return "refused"
        self._acknowledge()
        return "settled" if claim is not None else "turn"

    def _refuse_line(self, refused: StorageError, state: State) -> None:
        """Record that the database has refused an outbox, which the next boot applies."""
        self._refuse(refused)
        self._open = False
        self._shadow.begin(state, certain=True)

    def _outbox_of(
        self, arguments: Arguments, outbox: StateOutbox, state: State, now: float
    ) -> tuple[StateOutbox, State]:
        session, kind = outbox.session_id, str(arguments["emits"])
        if kind:
            name, spec, expected = self._new(kind, session, 0)
            fire_at = now + 1_000
            spec, expected = spec._replace(fire_at=fire_at), replace(expected, fire_at=fire_at)
            outbox = replace(outbox, emitted=((name, spec),))
            if state.holder(spec.key, now) is None:
                state = state.emitted(name, expected, now)
        number = int(str(arguments["checkpoint"]))
        task = state.tasks.get(f"task-{session}")
        if number and (task is None or task.status != "DONE"):
            status = _STATUSES[number - 1]
            checkpoint = Checkpoint(
                f"task-{session}", session, 0 if task is None else len(task.events), status,
                [outbox.seq], [("step", outbox.seq)] * number,
            )  # fmt: skip
            outbox = replace(outbox, checkpoints=(checkpoint,))
            state = state.checkpointed(
                checkpoint.task_id, session, status, f"[{outbox.seq}]",
                [("step", str(outbox.seq))] * number, now,
            )  # fmt: skip
        for position in range(int(str(arguments["activity"]))):
            action = list(ACTIONS.values())[position]
            intent = Intent(
                f"activity:{session}:{outbox.seq}:{position}", action, {"to": session}, session
            )
            outbox = replace(outbox, intents=(*outbox.intents, intent))
            state = state.intended(intent.key, f'{{"to":"{session}"}}')
        return outbox, state

    def _repeat(self, _arguments: Arguments) -> str:
        """Apply the outbox of the last line of each session again."""
        for outbox in self._lines.values():
            applied = self._do(self._applying(outbox), self._shadow.state)
            if applied is None:
                return "refused"
            if applied:
                raise InvalidState("the outbox of a line was applied twice", outbox=outbox)
            self.marks.reach(LINE_NOT_REPEATED)
        return "repeated"

    def _applying(self, outbox: StateOutbox) -> Callable[[Transaction], bool]:
        return lambda transaction: self._stores.apply(transaction, outbox)

    # -- the other ends of a claim -------------------------------------------------------

    def _propose_fail(self, choices: Choices) -> Arguments:
        session = choices.pick("session", sorted(self._claims))
        # A task is blocked when resuming it has failed.
        is_resume = self._claims[session].trigger.source is TriggerSource.RESUME
        hows = ("fail", "fail", "fail", "give back", "not retryable")
        return {
            "session": session, "how": choices.pick("how", hows[2::2] if is_resume else hows)
        }  # fmt: skip

    def _fail(self, arguments: Arguments) -> str:
        """Give a claimed trigger back, or stop it."""
        claim = self._claims.pop(str(arguments["session"]), None)
        if claim is None:
            return "nothing is claimed"
        name, how = self._shadow.name_of(claim.trigger.id), arguments["how"]
        state, now = self._shadow.state, self._now()
        triggers, is_retryable = self._stores.triggers, how == "fail"
        if how == "give back":
            self._do(
                lambda transaction: triggers.give_back(transaction, claim), state.given_back(name)
            )
        else:
            after = state.failed(name, now, now + 1, MOST_ATTEMPTS, retryable=is_retryable)
            if after.triggers[name].status == "DEAD":
                self.marks.reach(DEAD_BY_FAILURE)
            self._do(
                lambda transaction: triggers.fail(
                    transaction, claim, "busy", retryable=is_retryable
                ),
                after,
            )
        if self._shadow.state.triggers[name].status == "CLAIMED":
            self._claims[str(arguments["session"])] = claim
        return str(how)

    # -- routing, and the end of a session -----------------------------------------------

    def _may_route(self) -> bool:
        return self._open and ROUTER in self._claims

    def _propose_session(self, choices: Choices) -> Arguments:
        return {"session": choices.pick("session", self._sessions.living)}

    def _route(self, arguments: Arguments) -> str:
        """Give the trigger that is being routed to a session."""
        claim, session = self._claims.pop(ROUTER), str(arguments["session"])
        name = self._shadow.name_of(claim.trigger.id)
        self._do(
            lambda transaction: self._stores.triggers.route(transaction, claim, session),
            self._shadow.state.routed(name, session),
        )
        if self._shadow.state.triggers[name].status == "CLAIMED":
            self._claims[ROUTER] = claim
            return "refused"
        self.marks.reach(ROUTED)
        return "routed"

    def _may_end(self) -> bool:
        return self._open and len(self._sessions.ended) < MOST_ENDED

    def _routed(self) -> list[str]:
        routed = {each.session for each in self._shadow.state.open_triggers() if each.routed}
        return [session for session in self._sessions.living if session in routed]

    def _may_end_routed(self) -> bool:
        return self._may_end() and bool(self._routed())

    def _propose_routed(self, choices: Choices) -> Arguments:
        return {"session": choices.pick("session", self._routed())}

    def _end(self, arguments: Arguments) -> str:
        """End a session; its end is durable in its log before it is in the database."""
        session, before = str(arguments["session"]), self._shadow.state
        state = session_ended(before, session, self._now())
        self._sessions.end(session)
        claim = self._claims.pop(session, None)
        self._stale += [] if claim is None else [claim]
        self._shadow.begin(state, certain=True)
        try:
            self._state.transact(lambda transaction: self._stores.end_session(transaction, session))
        except StorageError as refused:
            self._refuse_line(refused, state)
            return "refused"
        self._acknowledge()
        self.marks.reach(SESSION_ENDED)
        if any(each.routed and each.session == session for each in before.open_triggers()):
            self.marks.reach(ROUTED_AGAIN)
        return "ended"

    def _has_stale(self) -> bool:
        return self._open and bool(self._stale)

    def _late(self, _arguments: Arguments) -> str:
        """Settle a claim of an earlier lifetime."""
        claim = self._stale[-1]
        if self._shadow.name_of(claim.trigger.id) not in self._shadow.state.triggers:
            return "removed"
        try:
            self._do(
                lambda transaction: self._stores.triggers.ack(transaction, claim),
                self._shadow.state,
            )
        except (FencedOff, UnknownTrigger):
            self._shadow.refuse()
            self.marks.reach(FENCED_OFF)
            return "fenced off"
        if self._open and not self.fault_plan:
            raise StaleSettlement("a stale claim has settled its trigger", claim=claim)
        return "refused"


def _due_at(trigger: ExpectedTrigger) -> float:
    return max(trigger.fire_at, trigger.pause[1] if trigger.pause is not None else 0.0)
