"""The specification of triggers in turns: accepted once, run once, never before their time.

``rows`` are the triggers of ``state.db`` that are not settled, by id. A durable turn line that
names a trigger settles it, so a trigger that is neither in ``rows`` nor named by a line is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from oracles.durable.violations import EarlyTrigger
from oracles.runtime.log_records import RUNTIME, TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import MisroutedMessage, UnsettledTrigger
from oracles.violation import Duplicated, LostAck, Phantom, Resurrected, Starved, TornRecord

MOST_ATTEMPTS: Final = 5
SECOND_NS: Final = 1_000_000_000


class TriggerLike(Protocol):
    """A row of ``triggers``."""

    @property
    def status(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def attempts(self) -> int: ...


Rows = Mapping[str, TriggerLike]


@dataclass(slots=True)
class _Emit:
    """One trigger that the operator has asked for; ``outcome`` is None while it is in flight."""

    session_id: str | None
    payload: Any
    fire_at: float
    is_repeated: bool = False
    outcome: bool | None = None


class ShadowTriggers:
    """The calls of ``emit``, by the ids that the operator has chosen."""

    def __init__(self) -> None:
        self._emits: dict[str, _Emit] = {}

    def begin(
        self, trigger_id: str, session_id: str | None, payload: object, fire_at: float
    ) -> None:
        """Record that a call has begun; ``fire_at`` is in seconds since 1970."""
        if trigger_id in self._emits:
            self._emits[trigger_id].is_repeated = True
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

    def check(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> None:
        """Check a snapshot that is not older than ``rows``; ``now_ns`` is the latest wall clock."""
        settled = self._settled(snapshot, now_ns)
        for trigger_id, emit in self._emits.items():
            is_there = trigger_id in rows or trigger_id in settled
            if emit.outcome is True and not is_there:
                raise LostAck("emit was acknowledged, and the trigger is lost", id=trigger_id)
            if emit.outcome is False and is_there:
                raise Resurrected("emit was refused, and the trigger exists", id=trigger_id)
        for trigger_id in rows:
            if trigger_id not in self._emits:
                raise Phantom("a trigger exists that was never emitted", id=trigger_id)

    def settle(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> None:
        """Check the first snapshot after a recovery; calls in flight are decided by it."""
        self.check(snapshot, rows, now_ns)
        settled = self._settled(snapshot, now_ns)
        for trigger_id, row in rows.items():
            if trigger_id in settled:
                raise UnsettledTrigger("a durable line names an open trigger", id=trigger_id)
            if row.status == "CLAIMED":
                raise UnsettledTrigger("a recovery has left a claim", id=trigger_id)
        for trigger_id, emit in self._emits.items():
            if emit.outcome is None:
                emit.outcome = trigger_id in rows or trigger_id in settled

    def check_quiesced(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> int:
        """Require that everything due is done, unless its agent may not run.

        Returns the number of triggers that turns have settled.
        """
        self.check(snapshot, rows, now_ns)
        settled = self._settled(snapshot, now_ns)
        agents = {state.session_id: state for state in snapshot.agents.values()}
        roots = [s for s in agents.values() if s.agent and not s.agent.parent_session_id]
        living_roots = [state for state in roots if not state.ended]
        for trigger_id, row in rows.items():
            state = agents.get(row.session_id or "")
            match row.status:
                case "DEAD":
                    is_right = row.attempts >= MOST_ATTEMPTS
                case "FAILED":
                    is_right = state is not None and bool(state.ended)
                case "PENDING":
                    is_right = (
                        state is not None and not state.ended and state.gate.closed
                        if row.session_id is not None
                        else len(living_roots) != 1
                    )
                case _:
                    is_right = False
            if trigger_id in settled or not is_right:
                raise Starved(
                    "a trigger is due, and nothing keeps it from its turn",
                    id=trigger_id, status=row.status, attempts=row.attempts,
                )  # fmt: skip
        return len(settled)

    def _settled(self, snapshot: RootSnapshot, now_ns: int) -> set[str]:
        """Return the triggers that durable lines name, each of which is checked."""
        settled: set[str] = set()
        for state in snapshot.judged:
            for turn in state.turns.values():
                if turn.trigger_id is None:
                    continue
                if turn.trigger_id in settled:
                    raise Duplicated("two turns have settled one trigger", id=turn.trigger_id)
                settled.add(turn.trigger_id)
                self._check_turn(state, turn, turn.trigger_id, now_ns)
        return settled

    def _check_turn(
        self, state: SessionState, turn: TurnRecord, trigger_id: str, now_ns: int
    ) -> None:
        emit = self._emits.get(trigger_id)
        if emit is None:
            raise Phantom("a turn settles a trigger that was never emitted", id=trigger_id)
        if emit.session_id not in (None, state.session_id):
            raise MisroutedMessage(
                "a trigger was run by another agent", id=trigger_id, path=state.path
            )
        if emit.fire_at * SECOND_NS > now_ns:
            raise EarlyTrigger("a trigger was run before its time", id=trigger_id, now_ns=now_ns)
        if turn.start is None:
            return
        shown = json.loads(turn.start.prompt)[0]
        payload = shown["payload"]
        expected = (trigger_id, RUNTIME, "trigger", emit.payload, emit.fire_at)
        actual = (
            shown["message_id"], shown["sender"], shown["kind"], payload["payload"],
            payload["fire_at"],
        )  # fmt: skip
        if actual != expected or turn.start.trigger_id != trigger_id:
            raise TornRecord(
                "a trigger was shown with other content", expected=expected, actual=actual
            )
