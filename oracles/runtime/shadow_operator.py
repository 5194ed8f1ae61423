"""What the operator asked of a runtime: each call is acknowledged, in flight, or impossible.

A call that raises an ``OSError`` stays in flight. A call that was refused by a typed error
has not happened. An id that did not happen may be asked for again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from oracles.runtime.log_records import USER
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import MisroutedMessage
from oracles.violation import Duplicated, LostAck, Phantom, Reordered, Resurrected, TornRecord


class CallOutcome(Enum):
    """What is known of a call."""

    IN_FLIGHT = "in flight"
    ACKNOWLEDGED = "acknowledged"
    IMPOSSIBLE = "impossible"


@dataclass(slots=True)
class _Call:
    """``begun`` and ``ended`` are instants of the shadow; ``what`` are the call's arguments.

    ``repeated``: it was called again while in flight, so that a refusal of one proves nothing.
    """

    what: tuple[Any, ...]
    begun: int
    ended: int = 0
    outcome: CallOutcome = CallOutcome.IN_FLIGHT
    repeated: bool = False


class _Calls:
    """All calls of one kind by their id, and those whose outcome a agent_view must still show."""

    __slots__ = ("by_id", "noun", "unsettled")

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.by_id: dict[str, _Call] = {}
        self.unsettled: dict[str, None] = {}

    def begin(self, key: str, what: tuple[Any, ...], now: int) -> None:
        call = self.by_id.get(key)
        if call is not None and call.outcome is not CallOutcome.IMPOSSIBLE:
            call.repeated = True
            return
        self.by_id[key] = _Call(what, now)
        self.unsettled[key] = None

    def acknowledge(self, key: str, now: int) -> None:
        call = self.by_id[key]
        call.outcome = CallOutcome.ACKNOWLEDGED
        call.ended = call.ended or now

    def refuse(self, key: str) -> None:
        call = self.by_id[key]
        if call.outcome is CallOutcome.IN_FLIGHT and not call.repeated:
            call.outcome = CallOutcome.IMPOSSIBLE

    def judge(self, key: str, *, happened: bool) -> None:
        """Compare what is known of a call with what a agent_view shows."""
        call = self.by_id[key]
        if call.outcome is CallOutcome.ACKNOWLEDGED and not happened:
            raise LostAck(f"an acknowledged {self.noun} is gone", id=key, what=call.what)
        if call.outcome is CallOutcome.IMPOSSIBLE and happened:
            raise Resurrected(f"a {self.noun} is there that did not happen", id=key, what=call.what)

    def settle(self, key: str, *, happened: bool) -> bool:
        """Resolve a call; return whether it was in flight and has happened."""
        call = self.by_id[key]
        if call.outcome is not CallOutcome.IN_FLIGHT:
            return False
        call.outcome = CallOutcome.ACKNOWLEDGED if happened else CallOutcome.IMPOSSIBLE
        return happened

    def must_be_known(self, key: str, evidence: object) -> _Call:
        """Return the call behind something that is there."""
        call = self.by_id.get(key)
        if call is None:
            raise Phantom(f"a {self.noun} is there that nobody asked for", found=evidence)
        self.judge(key, happened=True)
        return call


_Outcome = tuple[_Calls, str, bool]
"""A call, by its kind and its id, and whether a agent_view shows it."""


class ShadowOperator:
    """The operator's calls. Keys are ids that the caller chose: request ids and message ids."""

    __slots__ = ("_agents", "_creates", "_deliveries", "_ends", "_instant", "_sends")

    def __init__(self) -> None:
        self._instant = 0
        self._creates: Final = _Calls("agent")
        self._sends: Final = _Calls("message")
        self._ends: Final = _Calls("termination")
        self._deliveries: Final = _Calls("acknowledgement of a message to USER")
        self._agents: dict[str, str] = {}

    def _now(self) -> int:
        self._instant += 1
        return self._instant

    @property
    def has_agents(self) -> bool:
        """Whether the creation of an agent was acknowledged."""
        return any(
            call.outcome is CallOutcome.ACKNOWLEDGED for call in self._creates.by_id.values()
        )

    @property
    def in_flight(self) -> int:
        """How many calls have an outcome that is open."""
        kinds = (self._creates, self._sends, self._ends, self._deliveries)
        return sum(
            calls.by_id[key].outcome is CallOutcome.IN_FLIGHT
            for calls in kinds
            for key in calls.unsettled
        )

    def begin_create(
        self, request_id: str, name: str, instructions: str, provider: str, model: str
    ) -> None:
        """``create_agent`` was called."""
        self._creates.begin(request_id, (name, instructions, provider, model), self._now())

    def acknowledge_create(self, request_id: str, agent_id: str) -> None:
        """``create_agent`` has returned this agent; raise if the request has made another one."""
        before = self._agents.setdefault(request_id, agent_id)
        if before != agent_id:
            raise Duplicated(
                "one request has made two agents", request_id=request_id,
                agents=(before, agent_id),
            )  # fmt: skip
        self._creates.acknowledge(request_id, self._now())

    def refuse_create(self, request_id: str) -> None:
        """``create_agent`` has raised a typed refusal."""
        self._creates.refuse(request_id)

    def begin_send(self, message_id: str, agent_id: str, payload: object) -> None:
        """``send`` was called."""
        self._sends.begin(message_id, (agent_id, payload), self._now())

    def acknowledge_send(self, message_id: str) -> None:
        """``send`` has returned."""
        self._sends.acknowledge(message_id, self._now())

    def refuse_send(self, message_id: str) -> None:
        """``send`` has raised a typed refusal."""
        self._sends.refuse(message_id)

    def begin_terminate(self, agent_id: str) -> None:
        """``terminate`` was called."""
        self._ends.begin(agent_id, (), self._now())

    def acknowledge_terminate(self, agent_id: str) -> None:
        """``terminate`` has returned."""
        self._ends.acknowledge(agent_id, self._now())

    def refuse_terminate(self, agent_id: str) -> None:
        """``terminate`` has raised a typed refusal."""
        self._ends.refuse(agent_id)

    def begin_delivery(self, message_id: str) -> None:
        """``acknowledge`` of a message to USER was called."""
        self._deliveries.begin(message_id, (), self._now())

    def acknowledge_delivery(self, message_id: str) -> None:
        """``acknowledge`` has returned."""
        self._deliveries.acknowledge(message_id, self._now())

    def refuse_delivery(self, message_id: str) -> None:
        """``acknowledge`` has raised a typed refusal."""
        self._deliveries.refuse(message_id)

    def check(self, snapshot: RootSnapshot, excused: Collection[str]) -> None:
        """Compare with a agent_view; raise a ``Violation``."""
        for calls, key, happened in self._outcomes(snapshot, excused):
            calls.judge(key, happened=happened)
        for state in snapshot.agents.values():
            self._check_origin(state)
            self._check_messages(state)
        for key in snapshot.user.delivered:
            self._deliveries.must_be_known(key, key)

    def settle(self, snapshot: RootSnapshot, excused: Collection[str]) -> bool:
        """Resolve what is in flight by a agent_view that was checked; return whether any happened.

        What is excused stays as it is.
        """
        kept = False
        for calls, key, happened in self._outcomes(snapshot, excused):
            kept |= calls.settle(key, happened=happened)
            del calls.unsettled[key]
        for state in snapshot.agents.values():
            if state.agent is not None and state.agent.request_id is not None:
                self._agents[state.agent.request_id] = state.agent_id
        return kept

    def _outcomes(self, snapshot: RootSnapshot, excused: Collection[str]) -> list[_Outcome]:
        """Return what is not excused of the calls whose outcome is open or new."""
        outcomes = self._shown_by(snapshot)
        if excused:
            return [
                outcome for outcome in outcomes if not self._is_lost(snapshot, excused, *outcome)
            ]
        return list(outcomes)

    def _shown_by(self, snapshot: RootSnapshot) -> Iterator[_Outcome]:
        requests: dict[str, SessionState] = {}
        for state in snapshot.agents.values():
            assert state.agent is not None
            request_id = state.agent.request_id
            if request_id is not None:
                if request_id in requests:
                    raise Duplicated("one request has made two agents", request_id=request_id)
                requests[request_id] = state
        for key in self._creates.unsettled:
            yield self._creates, key, key in requests
        for key in self._sends.unsettled:
            target = snapshot.agents.get(self._sends.by_id[key].what[0])
            yield self._sends, key, target is not None and key in target.enqueued
        for key in self._ends.unsettled:
            target = snapshot.agents.get(key)
            # An agent may complete by itself before it can be terminated: then it was not.
            yield self._ends, key, target is not None and target.ended == "operator"
        for key in self._deliveries.unsettled:
            yield self._deliveries, key, key in snapshot.user.delivered

    def _is_lost(
        self,
        snapshot: RootSnapshot,
        excused: Collection[str],
        calls: _Calls,
        key: str,
        happened: bool,
    ) -> bool:
        """Whether it went with a damaged session, or with an agent that is not there at all."""
        if calls is self._creates:
            return not happened
        if calls is self._deliveries:
            return snapshot.user.session_id in excused
        agent_id = calls.by_id[key].what[0] if calls is self._sends else key
        session_id = snapshot.session_of(agent_id)
        return not session_id or session_id in excused

    def _check_origin(self, state: SessionState) -> None:
        """A root was asked for, as it is; an end by the operator was asked for."""
        agent = state.agent
        assert agent is not None
        if agent.parent_session_id is None:
            if agent.request_id is None:
                raise Phantom("a root is there that nobody asked for", agent=agent)
            call = self._creates.must_be_known(agent.request_id, agent)
            created = state.created
            actual = (agent.name, agent.instructions, created["provider"], created["model"])
            if actual != call.what:
                raise TornRecord(
                    "a root is not as it was asked for", actual=actual, asked=call.what
                )
            if self._agents.get(agent.request_id, agent.agent_id) != agent.agent_id:
                raise Duplicated("one request has made two agents", agent=agent)
        elif agent.request_id is not None:
            raise Phantom("a child claims a request of the operator", agent=agent)
        if state.ended == "operator":
            self._ends.must_be_known(agent.agent_id, agent)

    def _check_messages(self, state: SessionState) -> None:
        """The operator's messages are as they were sent, in the order in which they were sent.

        Two sends that were under way at once may stand in either order.
        """
        latest = 0
        for message in state.enqueued.values():
            if message.sender != USER:
                continue
            call = self._sends.must_be_known(message.message_id, message)
            agent_id, payload = call.what
            if agent_id != state.agent_id:
                raise MisroutedMessage(
                    "the operator's message reached somebody else", message=message
                )
            actual = (message.kind, message.payload, message.reply_to)
            if actual != ("text", payload, None):
                raise TornRecord("a message is not as the operator sent it", message=message)
            if call.ended and call.ended < latest:
                raise Reordered("the operator's messages overtook each other", message=message)
            latest = max(latest, call.begun)
