"""The laws of ``view()``: it shows the state in the logs, and accepted work gets done.

The protocols describe the parts of a view that are compared; nothing of the runtime is
imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from oracles.runtime.delivery_laws import check_delivered, check_reminders
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.snapshot_laws import LAST_TURNS
from oracles.violation import OutOfSync, Phantom, Starved


class MessageLike(Protocol):
    """A message of USER in a view."""

    @property
    def message_id(self) -> str: ...


class AgentViewLike(Protocol):
    """An agent in a view; ``stopped`` is a reason or empty."""

    @property
    def agent_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def alive(self) -> bool: ...
    @property
    def turns(self) -> int: ...
    @property
    def last_turns(self) -> Sequence[str]: ...
    @property
    def pending(self) -> Sequence[str]: ...
    @property
    def gated(self) -> bool: ...
    @property
    def permits(self) -> int: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def stopped(self) -> str: ...


class RuntimeViewLike(Protocol):
    """A view: every agent, and the messages that USER has not acknowledged."""

    @property
    def agents(self) -> Sequence[AgentViewLike]: ...
    @property
    def user(self) -> Sequence[MessageLike]: ...


def check_view(view: RuntimeViewLike, snapshot: RootSnapshot) -> None:
    """Require of the view of a running system that it shows nothing that the logs lack."""
    for agent in view.agents:
        if agent.session_id in snapshot.excused:
            continue
        state = snapshot.agents.get(agent.agent_id)
        if state is None:
            raise Phantom("the view shows an agent that no log contains", agent=agent)
        turns = tuple(state.turns)
        if tuple(agent.last_turns) != turns[: agent.turns][-LAST_TURNS:] or agent.turns > len(
            turns
        ):
            raise OutOfSync(
                "the view shows turns that the log of the agent lacks",
                path=state.path, log=turns, count=agent.turns, view=tuple(agent.last_turns),
            )  # fmt: skip
        for key in agent.pending:
            if key not in state.enqueued:
                raise Phantom(
                    "the view shows a pending message that the log of the agent lacks",
                    path=state.path, message_id=key,
                )  # fmt: skip


def check_idle_view(view: RuntimeViewLike, snapshot: RootSnapshot) -> None:
    """Require of the view of an idle system that it equals the state in the logs.

    A stopped session is left out, because its log may contain a line that is not durable. An
    agent that has ended may be missing.
    """
    check_view(view, snapshot)
    shown = {agent.agent_id for agent in view.agents}
    missing = [
        agent_id
        for agent_id, state in snapshot.agents.items()
        if not state.ended and agent_id not in shown and state.session_id not in snapshot.excused
    ]
    if missing:
        raise OutOfSync("the view lacks living agents", missing=missing)
    for agent in view.agents:
        if not agent.stopped and agent.session_id not in snapshot.excused:
            _check_agent(agent, snapshot, snapshot.agents[agent.agent_id])
    user = [message.message_id for message in view.user]
    if snapshot.user.session_id not in snapshot.excused and user != list(snapshot.user.pending):
        raise OutOfSync(
            "the view shows other messages to USER than the log of USER",
            log=list(snapshot.user.pending), view=user,
        )  # fmt: skip


def check_quiesced_view(
    view: RuntimeViewLike, snapshot: RootSnapshot, now_ns: int, waiting: Collection[str] = ()
) -> None:
    """Require that all accepted work is done, when no fault is active and nothing moves.

    An agent may wait if it is gated, stopped, or in ``waiting``: not woken by the resume
    policy. ``now_ns`` is the wall clock, since 1970.
    """
    check_idle_view(view, snapshot)
    stopped = (agent.session_id for agent in view.agents if agent.stopped)
    snapshot = snapshot.excusing({*snapshot.excused, *stopped})
    check_delivered(snapshot)
    check_reminders(snapshot, now_ns)
    for agent in view.agents:
        if agent.session_id in (*snapshot.excused, *waiting) or not agent.alive:
            continue
        if agent.pending and (agent.permits or not agent.gated):
            raise Starved("an agent has pending messages and may run, but does not", agent=agent)


def _check_agent(agent: AgentViewLike, snapshot: RootSnapshot, state: SessionState) -> None:
    assert state.agent is not None
    parent = snapshot.sessions.get(state.agent.parent_session_id or "")
    expected: dict[str, object] = {
        "session_id": state.session_id,
        "name": state.agent.name,
        "parent_id": parent.state.agent_id if parent else None,
        "alive": not state.ended,
        "turns": len(state.turns),
        "pending": list(state.pending),
        "metadata": state.metadata,
        **({} if state.ended else {"gated": state.gate.closed}),
    }
    actual = {name: getattr(agent, name) for name in expected}
    actual["pending"] = list(agent.pending)
    if actual != expected:
        wrong = [name for name, value in actual.items() if value != expected[name]]
        raise OutOfSync(
            f"the view differs from the log of the agent in {', '.join(wrong)}",
            log={name: expected[name] for name in wrong},
            view={name: actual[name] for name in wrong}, path=state.path,
        )  # fmt: skip
    if agent.alive and agent.permits < state.gate.unused_permits:
        raise OutOfSync(
            "the view shows fewer permits than the log of the agent",
            log=state.gate.unused_permits, view=agent.permits, path=state.path,
        )  # fmt: skip
