"""The specification of triggers in turns: accepted once, run once, never before their time.

A trigger comes from the operator, from the line of a turn (a reminder, or one that an agent has
emitted), from a schedule, or from a boot that resumes a task. A durable turn line that names it
settles it, so a trigger that is neither in ``rows`` nor named by a line is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from oracles.durable.rows import Row, Rows
from oracles.durable.violations import EarlyTrigger
from oracles.runtime.log_records import RUNTIME, TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import MisroutedMessage
from oracles.violation import Duplicated, LostAck, Phantom, Resurrected, Starved, TornRecord

SECOND_NS: Final = 1_000_000_000
_OWN: Final = ("scheduled", "scheduled-once", "resume")
"""The prefixes of keys whose triggers the runtime emits, without a call or a line."""


@dataclass(slots=True)
class _Emit:
    """One IMMEDIATE trigger of the operator, without a description.

    ``outcome`` is None while the call is in flight.
    """

    session_id: str | None
    payload: Any
    fire_at: float
    is_repeated: bool = False
    outcome: bool | None = None


@dataclass(frozen=True, slots=True)
class _TurnEmit:
    """A trigger that a line has emitted, at ``due_ns``, for the agent of that line."""

    state: SessionState
    payload: Any
    due_ns: int
    is_reminder: bool


class ShadowTriggers:
    """The calls of ``emit``, by the ids that the operator has chosen, and what lines emit.

    A trigger that was claimed ``most_attempts`` times is DEAD. ``decided`` are those about which
    a person has decided, ``stopped_keys`` the keys of triggers that were FAILED or DEAD.
    """

    def __init__(self, most_attempts: int = 5) -> None:
        self._most_attempts = most_attempts
        self._emits: dict[str, _Emit] = {}
        self._keys: dict[str, str] = {}
        self._done: set[str] = set()
        self.decided: set[str] = set()
        self.stopped_keys: set[str] = set()

    def begin(
        self, trigger_id: str, session_id: str | None, payload: object, fire_at: float
    ) -> None:
        """Record that a call has begun; ``fire_at`` is in seconds since 1970."""
        if trigger_id in self._emits:
            emit = self._emits[trigger_id]
            emit.is_repeated = True
            emit.outcome = emit.outcome or None
        else:
            self._emits[trigger_id] = _Emit(session_id, payload, fire_at)

    def acknowledge(self, trigger_id: str) -> None:
        """Record that a call returned."""
        self._emits[trigger_id].outcome = True

    def refuse(self, trigger_id: str) -> None:
        """Record that a call raised a typed refusal: it has changed nothing."""
        emit = self._emits[trigger_id]
        if emit.outcome is None and not emit.is_repeated:
            emit.outcome = False

    def decide(self, trigger_id: str) -> None:
        """Record the decision of a person about a stopped trigger, durable or in flight."""
        self.decided.add(trigger_id)

    def discard(self, trigger_id: str) -> None:
        """Record that a stopped trigger was settled by a person."""
        self._done.add(trigger_id)

    def check(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> None:
        """Check a snapshot that is not older than ``rows``; ``now_ns`` is the latest time."""
        self._keys.update((row["id"], row["dedup_key"] or "") for row in rows.triggers)
        emitted = dict(_emitted_by_turns(snapshot))
        settled = self._settled(snapshot, emitted, now_ns)
        self._done.update(row["id"] for row in rows.triggers if row["status"] == "DONE")
        self.stopped_keys.update(
            row["dedup_key"] or "" for row in rows.triggers if _was_stopped(row)
        )
        # A row that is DONE may be removed after a day.
        there = {row["id"] for row in rows.triggers} | settled | self._done
        for trigger_id, emit in self._emits.items():
            if emit.outcome is True and trigger_id not in there:
                raise LostAck("emit was acknowledged, and the trigger is lost", id=trigger_id)
            if emit.outcome is False and trigger_id in there:
                raise Resurrected("emit was refused, and the trigger exists", id=trigger_id)
        for row in rows.triggers:
            prefix = (row["dedup_key"] or "").partition(":")[0]
            is_known = row["id"] in self._emits or row["id"] in emitted or prefix in _OWN
            if not (is_known or snapshot.excused):
                raise Phantom("a trigger exists that was never emitted", actual=row)
            own = self._emits.get(row["id"])
            if own is not None and _shown(row) != _expected(own, row):
                raise TornRecord("a trigger has other contents", expected=own, actual=row)

    def settle(self, snapshot: RootSnapshot, rows: Rows) -> None:
        """Decide the calls in flight by the first snapshot after a recovery."""
        there = {row["id"] for row in rows.triggers}
        there |= {key for state in snapshot.agents.values() for key in state.handled}
        for trigger_id, emit in self._emits.items():
            if emit.outcome is None:
                emit.outcome = trigger_id in there

    def check_quiesced(
        self,
        snapshot: RootSnapshot,
        rows: Rows,
        now_ns: int,
        is_unfit: Callable[[str], bool],
    ) -> int:
        """Require that everything due is done, unless its agent may not run.

        ``now_ns`` is the time of the runtime; ``is_unfit`` says of a trigger that the router
        has refused all candidates. Returns the number of triggers that turns have settled.
        """
        agents = {state.session_id: state for state in snapshot.agents.values()}
        for row in rows.triggers:
            if not self._is_right(row, agents, now_ns, is_unfit):
                raise Starved(
                    "a trigger is due, and nothing keeps it from its turn",
                    id=row["id"], key=row["dedup_key"], status=row["status"],
                    attempts=row["attempts"],
                )  # fmt: skip
        return sum(len(state.handled) for state in agents.values())

    def _is_right(
        self, row: Row, agents: Mapping[str, SessionState], now_ns: int,
        is_unfit: Callable[[str], bool],
    ) -> bool:  # fmt: skip
        """Whether the row of a trigger is allowed when all work has settled."""
        state = agents.get(row["session_id"] or "")
        match row["status"]:
            case "DONE":
                return True
            case "DEAD":
                return bool(row["attempts"] >= self._most_attempts)
            case "FAILED":
                return state is not None and bool(state.ended)
            case "PENDING" if row["due_at"] * SECOND_NS > now_ns:
                return True
            case "PENDING" if row["session_id"] is not None:
                return state is not None and not state.ended and state.gate.closed
            case "PENDING":
                roots = [s for s in agents.values() if s.agent and not s.agent.parent_session_id]
                return all(root.ended for root in roots) or is_unfit(row["id"])
            case _:
                return False

    def _settled(
        self, snapshot: RootSnapshot, emitted: Mapping[str, _TurnEmit], now_ns: int
    ) -> set[str]:
        """Return the triggers that durable lines name, each of which is checked."""
        settled: set[str] = set()
        occurrences: set[str] = set()
        for state in snapshot.judged:
            for turn in state.turns.values():
                if turn.trigger_id is None:
                    continue
                if turn.trigger_id in settled:
                    raise Duplicated("two turns have settled one trigger", id=turn.trigger_id)
                settled.add(turn.trigger_id)
                key = self._keys.get(turn.trigger_id, "")
                if key.startswith("scheduled"):
                    if key in occurrences:
                        raise Duplicated("an occurrence of a schedule was run twice", key=key)
                    occurrences.add(key)
                self._check_turn(state, turn, turn.trigger_id, emitted.get(turn.trigger_id), now_ns)
        return settled

    def _check_turn(
        self, state: SessionState, turn: TurnRecord, trigger_id: str, by_turn: _TurnEmit | None,
        now_ns: int,
    ) -> None:  # fmt: skip
        emit, shown = self._emits.get(trigger_id), _first_shown(turn)
        if by_turn is not None:
            session_id: str | None = by_turn.state.session_id
            payload, due_ns = by_turn.payload, by_turn.due_ns
        elif emit is not None:
            session_id, payload, due_ns = emit.session_id, emit.payload, 0
            due_ns = round(emit.fire_at * SECOND_NS)
        else:
            source = shown["payload"]["source"] if shown is not None else "SCHEDULED"
            if source not in ("SCHEDULED", "RESUME"):
                raise Phantom("a turn settles a trigger that nothing has emitted", id=trigger_id)
            if shown is not None and shown["payload"]["fire_at"] * SECOND_NS > now_ns:
                raise EarlyTrigger("an occurrence was run before its time", id=trigger_id)
            return
        if session_id not in (None, state.session_id):
            raise MisroutedMessage(
                "a trigger was run by another agent", id=trigger_id, path=state.path
            )
        if due_ns > now_ns:
            raise EarlyTrigger("a trigger was run before its time", id=trigger_id, now_ns=now_ns)
        if shown is None or turn.start is None:
            return
        is_reminder = by_turn is not None and by_turn.is_reminder
        actual = (
            shown["message_id"], shown["sender"], shown["kind"],
            shown["payload"] if is_reminder else shown["payload"]["payload"],
            turn.start.trigger_id,
        )  # fmt: skip
        sender, kind = (state.agent_id, "reminder") if is_reminder else (RUNTIME, "trigger")
        expected = (trigger_id, sender, kind, payload, trigger_id)
        if actual != expected:
            raise TornRecord(
                "a trigger was shown with other content", expected=expected, actual=actual
            )


def _first_shown(turn: TurnRecord) -> Any:
    return None if turn.start is None else json.loads(turn.start.prompt)[0]


def _emitted_by_turns(snapshot: RootSnapshot) -> Iterator[tuple[str, _TurnEmit]]:
    """Yield the triggers that lines have emitted, by their ids."""
    for state in snapshot.agents.values():
        for turn in state.turns.values():
            for reminder in turn.reminders:
                emit = _TurnEmit(state, reminder.payload, reminder.due_ns, is_reminder=True)
                yield reminder.reminder_id, emit
            for emitted in turn.emitted:
                due_ns = round(emitted.fire_at * SECOND_NS)
                emit = _TurnEmit(state, emitted.payload, due_ns, is_reminder=False)
                yield emitted.trigger_id, emit


def _shown(row: Row) -> tuple[object, ...]:
    return row["source"], row["description"], json.loads(row["payload_json"]), row["fire_at"]


def _expected(emit: _Emit, row: Row) -> tuple[object, ...]:
    """Return what the row of a trigger must show; a settled one has no payload."""
    payload = None if row["status"] == "DONE" else emit.payload
    return "IMMEDIATE", None, payload, emit.fire_at


def _was_stopped(row: Row) -> bool:
    """Whether a trigger is FAILED or DEAD, or was when a person discarded it."""
    return row["status"] in ("FAILED", "DEAD") or row["resolution"] == "discarded"
