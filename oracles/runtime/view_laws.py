"""V-8 and V-9: what the running system shows is what its logs add up to, and it gets done.

The shapes here are those of the runtime's view; nothing of the runtime is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from oracles.runtime.promise_laws import check_due, check_promises
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.violation import OutOfSync, Phantom, Starved


class MessageLike(Protocol):
    """A message as a view shows it."""

    @property
    def message_id(self) -> str: ...


class AgentViewLike(Protocol):
    """An agent as a view shows it; ``stopped`` is a reason or empty."""

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
    def turns(self) -> Sequence[str]: ...
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
    """What ``view()`` shows: every agent, and the messages that USER has not acknowledged."""

    @property
    def agents(self) -> Sequence[AgentViewLike]: ...
    @property
    def user(self) -> Sequence[MessageLike]: ...


def check_view(
    view: RuntimeViewLike, snapshot: RootSnapshot, excused: Collection[str] = ()
) -> None:
    """Compare a view with the logs while the system runs: it shows nothing they do not hold."""
    for agent_view in view.agents:
        if agent_view.session_id in excused:
            continue
        state = snapshot.agents.get(agent_view.agent_id)
        if state is None:
            raise Phantom("the view shows an agent that no log holds", agent=agent_view)
        turns = tuple(state.turns)
        if tuple(agent_view.turns) != turns[: len(agent_view.turns)]:
            raise OutOfSync("the view shows other turns than the log", view=agent_view, log=turns)
        for key in agent_view.pending:
            if key not in state.enqueued:
                raise Phantom(
                    "the view shows a message that no log holds", agent=agent_view, key=key
                )


def check_view_at_rest(
    view: RuntimeViewLike, snapshot: RootSnapshot, excused: Collection[str] = ()
) -> None:
    """Compare a view with the logs when nothing is under way: they are equal.

    A session that has stopped is left out: its log may hold a line that never became durable.
    """
    check_view(view, snapshot, excused)
    shown = {agent_view.agent_id for agent_view in view.agents}
    hidden = [
        agent_id
        for agent_id, state in snapshot.agents.items()
        if not state.ended and agent_id not in shown and state.session_id not in excused
    ]
    if hidden:
        raise OutOfSync("the view does not show a living agent", agents=hidden)
    for agent_view in view.agents:
        if agent_view.stopped or agent_view.session_id in excused:
            continue
        state = snapshot.agents[agent_view.agent_id]
        expected = _expected(snapshot, state)
        actual = {
            "session_id": agent_view.session_id,
            "name": agent_view.name,
            "parent_id": agent_view.parent_id,
            "alive": agent_view.alive,
            "turns": tuple(agent_view.turns),
            "pending": tuple(agent_view.pending),
            "metadata": dict(agent_view.metadata),
        }
        if agent_view.alive:
            actual["gated"] = agent_view.gated
            expected["gated"] = state.gated
        if actual != expected:
            wrong = [name for name, value in actual.items() if value != expected[name]]
            raise OutOfSync(
                f"the view and the log differ in {', '.join(wrong)}", actual=actual,
                expected=expected,
            )  # fmt: skip
        if agent_view.alive and agent_view.permits < state.unused_permits:
            raise OutOfSync(
                "the view shows fewer permits than the log",
                view=agent_view,
                log=state.unused_permits,
            )
    user = [message.message_id for message in view.user]
    if snapshot.user.session_id not in excused and user != list(snapshot.user.pending):
        raise OutOfSync(
            "the view shows USER other messages", actual=user, log=snapshot.user.pending
        )


def check_quiet(
    view: RuntimeViewLike,
    snapshot: RootSnapshot,
    now_ns: int,
    excused: Collection[str] = (),
    held: Collection[str] = (),
) -> None:
    """When no fault is left and nothing moves, all accepted work is done (V-9).

    What a gate, a stopped session or the resume policy (``held``) holds back may wait.
    """
    check_view_at_rest(view, snapshot, excused)
    absent = {
        *excused,
        *(agent_view.session_id for agent_view in view.agents if agent_view.stopped),
    }
    check_promises(snapshot, absent)
    check_due(snapshot, now_ns, absent)
    for agent_view in view.agents:
        if agent_view.session_id in absent or agent_view.session_id in held or not agent_view.alive:
            continue
        if agent_view.pending and (agent_view.permits or not agent_view.gated):
            raise Starved("an agent has messages and does not run", agent=agent_view)


def _expected(snapshot: RootSnapshot, state: SessionState) -> dict[str, object]:
    agent = state.agent
    assert agent is not None
    parent = snapshot.sessions.get(agent.parent_session_id or "")
    return {
        "session_id": state.session_id,
        "name": agent.name,
        "parent_id": parent.state.agent_id if parent else None,
        "alive": not state.ended,
        "turns": tuple(state.turns),
        "pending": tuple(state.pending),
        "metadata": state.metadata,
    }
