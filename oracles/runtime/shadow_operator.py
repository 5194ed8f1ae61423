"""The specification of the operator's calls.

Each call is in flight, acknowledged or impossible. A call that raises ``OSError`` stays in
flight; one that raises a typed refusal did not happen, and its id may be used again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, Final

from oracles.runtime.log_records import USER
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import MisroutedMessage
from oracles.violation import Duplicated, LostAck, Phantom, Reordered, Resurrected, TornRecord


class CallOutcome(Enum):
    """The possible outcomes of a call."""

    IN_FLIGHT = "in flight"
    ACKNOWLEDGED = "acknowledged"
    IMPOSSIBLE = "impossible"


@dataclass(slots=True)
class _Call:
    """``begun`` and ``ended`` are logical instants of the shadow; ``ended`` is 0 until then.

    ``repeated`` says that the call was made again while in flight: then the refusal of one
    attempt proves nothing about the other.
    """

    arguments: tuple[Any, ...]
    begun: int
    ended: int = 0
    outcome: CallOutcome = CallOutcome.IN_FLIGHT
    repeated: bool = False


class ShadowCalls:
    """The calls of one kind, by an id that the caller chose.

    ``undecided`` are the calls to be compared with the next snapshot.
    """

    __slots__ = ("_call", "_effect", "_instants", "by_id", "undecided")

    def __init__(self, call: str, effect: str, instants: Iterator[int]) -> None:
        self._call = call
        self._effect = effect
        self._instants = instants
        self.by_id: dict[str, _Call] = {}
        self.undecided: dict[str, None] = {}

    def begin(self, key: str, *arguments: Any) -> None:
        """Record that the call was made with these arguments, beside its id."""
        call = self.by_id.get(key)
        if call is not None and call.outcome is not CallOutcome.IMPOSSIBLE:
            call.repeated = True
            return
        self.by_id[key] = _Call(arguments, next(self._instants))
        self.undecided[key] = None

    def acknowledge(self, key: str) -> None:
        """Record that the call returned."""
        call = self.by_id[key]
        call.outcome = CallOutcome.ACKNOWLEDGED
        call.ended = call.ended or next(self._instants)

    def is_acknowledged(self, key: str) -> bool:
        """Whether the call returned, or was decided to have taken effect."""
        return self.by_id[key].outcome is CallOutcome.ACKNOWLEDGED

    def refuse(self, key: str) -> None:
        """Record that the call raised a typed refusal."""
        call = self.by_id[key]
        if call.outcome is CallOutcome.IN_FLIGHT and not call.repeated:
            call.outcome = CallOutcome.IMPOSSIBLE

    def compare(self, key: str, *, happened: bool) -> None:
        """Compare the outcome of a call with a snapshot; raise a ``Violation``."""
        call = self.by_id[key]
        if call.outcome is CallOutcome.ACKNOWLEDGED and not happened:
            raise LostAck(
                f"{self._call} was acknowledged, and {self._effect} is lost",
                id=key, arguments=call.arguments,
            )  # fmt: skip
        if call.outcome is CallOutcome.IMPOSSIBLE and happened:
            raise Resurrected(
                f"{self._call} was refused or lost in a crash, and {self._effect} exists",
                id=key, arguments=call.arguments,
            )  # fmt: skip

    def settle(self, key: str, *, happened: bool) -> bool:
        """Decide a call; return whether it was in flight and took effect."""
        del self.undecided[key]
        call = self.by_id[key]
        if call.outcome is not CallOutcome.IN_FLIGHT:
            return False
        call.outcome = CallOutcome.ACKNOWLEDGED if happened else CallOutcome.IMPOSSIBLE
        return happened

    def require(self, key: str, found: object) -> _Call:
        """Return the call that caused ``found``; raise ``Phantom`` if there was none."""
        call = self.by_id.get(key)
        if call is None:
            raise Phantom(f"{self._effect} exists without a call of {self._call}", found=found)
        self.compare(key, happened=True)
        return call


_Effect = tuple[ShadowCalls, str, bool]
"""A call, by its kind and its id, and whether a snapshot contains its effect."""


class ShadowOperator:
    """The operator's calls.

    ``creates`` are by request id, with name, instructions, provider and model; ``sends`` by
    message id, with agent id and payload; ``terminations`` by agent id; ``deliveries``, the
    calls of ``acknowledge``, by message id.
    """

    def __init__(self) -> None:
        instants = count(1)
        self.creates: Final = ShadowCalls("create_agent", "the root agent", instants)
        self.sends: Final = ShadowCalls("send", "the message", instants)
        self.terminations: Final = ShadowCalls("terminate", "the termination", instants)
        self.deliveries: Final = ShadowCalls("acknowledge", "the delivery to USER", instants)
        self._agents: dict[str, str] = {}

    @property
    def has_agents(self) -> bool:
        """Whether the creation of an agent was acknowledged."""
        calls = self.creates.by_id.values()
        return any(call.outcome is CallOutcome.ACKNOWLEDGED for call in calls)

    @property
    def in_flight(self) -> int:
        """The number of calls in flight."""
        return sum(
            calls.by_id[key].outcome is CallOutcome.IN_FLIGHT
            for calls in (self.creates, self.sends, self.terminations, self.deliveries)
            for key in calls.undecided
        )

    def acknowledge_create(self, request_id: str, agent_id: str) -> None:
        """Record that ``create_agent`` returned; raise if the request returned another agent."""
        before = self._agents.setdefault(request_id, agent_id)
        if before != agent_id:
            raise Duplicated(
                "create_agent returned two agents for one request",
                request_id=request_id, agents=(before, agent_id),
            )  # fmt: skip
        self.creates.acknowledge(request_id)

    def check(self, snapshot: RootSnapshot) -> None:
        """Compare with a snapshot; raise a ``Violation``."""
        for calls, key, happened in self._effects(snapshot):
            calls.compare(key, happened=happened)
        for state in snapshot.agents.values():
            self._check_origin(state)
            self._check_messages(state)
        for key in snapshot.user.delivered:
            self.deliveries.require(key, key)

    def settle(self, snapshot: RootSnapshot) -> bool:
        """Decide the calls in flight by a snapshot that was checked.

        Calls on excused sessions stay in flight. Returns whether one of the decided calls took
        effect.
        """
        any_happened = False
        for calls, key, happened in self._effects(snapshot):
            any_happened |= calls.settle(key, happened=happened)
        for state in snapshot.agents.values():
            if state.agent is not None and state.agent.request_id is not None:
                self._agents[state.agent.request_id] = state.agent_id
        return any_happened

    def _effects(self, snapshot: RootSnapshot) -> list[_Effect]:
        """Return the undecided calls, without those whose effect damage may have destroyed."""
        effects = self._all_effects(snapshot)
        if snapshot.excused:
            return [effect for effect in effects if not self._is_excused(snapshot, effect)]
        return list(effects)

    def _all_effects(self, snapshot: RootSnapshot) -> Iterator[_Effect]:
        requests: dict[str, SessionState] = {}
        for state in snapshot.agents.values():
            assert state.agent is not None
            request_id = state.agent.request_id
            if request_id is not None:
                if request_id in requests:
                    raise Duplicated(
                        "two agents were created for one request", request_id=request_id,
                        paths=(requests[request_id].path, state.path),
                    )  # fmt: skip
                requests[request_id] = state
        for key in self.creates.undecided:
            yield self.creates, key, key in requests
        for key in self.sends.undecided:
            target = snapshot.agents.get(self.sends.by_id[key].arguments[0])
            yield self.sends, key, target is not None and key in target.enqueued
        for key in self.terminations.undecided:
            target = snapshot.agents.get(key)
            # An agent that completed by itself before the call was not terminated by it.
            yield self.terminations, key, target is not None and target.ended == "operator"
        for key in self.deliveries.undecided:
            yield self.deliveries, key, key in snapshot.user.delivered

    def _is_excused(self, snapshot: RootSnapshot, effect: _Effect) -> bool:
        calls, key, happened = effect
        if calls is self.creates:
            return not happened
        if calls is self.deliveries:
            return snapshot.user.session_id in snapshot.excused
        agent_id = calls.by_id[key].arguments[0] if calls is self.sends else key
        session_id = snapshot.session_of(agent_id)
        return not session_id or session_id in snapshot.excused

    def _check_origin(self, state: SessionState) -> None:
        """Require that a root agent and an end by the operator were requested."""
        agent = state.agent
        assert agent is not None
        if agent.parent_session_id is None:
            if agent.request_id is None:
                raise Phantom("a root agent exists that has no request id", agent=agent)
            call = self.creates.require(agent.request_id, agent)
            created = state.created
            actual = (agent.name, agent.instructions, created["provider"], created["model"])
            if actual != call.arguments:
                raise TornRecord(
                    "a root agent differs from the one that create_agent requested",
                    expected=call.arguments, actual=actual,
                )  # fmt: skip
            known_id = self._agents.get(agent.request_id, agent.agent_id)
            if known_id != agent.agent_id:
                raise Duplicated(
                    "a request that had created one agent has created another",
                    request_id=agent.request_id, agents=(known_id, agent.agent_id),
                )  # fmt: skip
        elif agent.request_id is not None:
            raise Phantom("a child has the request id of a root agent", agent=agent)
        if state.ended == "operator":
            self.terminations.require(agent.agent_id, agent)

    def _check_messages(self, state: SessionState) -> None:
        """Require the operator's messages unchanged, in the order of the calls.

        Two calls that overlapped may have taken effect in either order.
        """
        latest = 0
        for message in state.enqueued.values():
            if message.sender != USER:
                continue
            call = self.sends.require(message.message_id, message)
            agent_id, payload = call.arguments
            if agent_id != state.agent_id:
                raise MisroutedMessage(
                    "a message of the operator was enqueued for another agent",
                    expected=agent_id, actual=state.agent_id, message=message,
                )  # fmt: skip
            expected = ("text", payload, None)
            actual = (message.kind, message.payload, message.reply_to)
            if actual != expected:
                raise TornRecord(
                    "a message of the operator differs from the one that was sent",
                    message_id=message.message_id, expected=expected, actual=actual,
                )  # fmt: skip
            if call.ended and call.ended < latest:
                raise Reordered(
                    "a message of the operator was enqueued after one that was sent later",
                    path=state.path, message=message,
                )  # fmt: skip
            latest = max(latest, call.begun)
