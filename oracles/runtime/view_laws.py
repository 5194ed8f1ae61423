"""V-8 and V-9: what the running system shows is what its logs add up to, and it gets done.

The shapes here are those of the runtime's view; nothing of the runtime is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from oracles.runtime.fold import Fold
from oracles.runtime.promise_laws import check_due, check_promises
from oracles.runtime.seen import Seen
from oracles.violation import Invented, OutOfSync, Starved


class MessageLook(Protocol):
    """A message as a view shows it."""

    @property
    def message_id(self) -> str: ...


class AgentLook(Protocol):
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


class ViewLook(Protocol):
    """What ``view()`` shows: every agent, and the messages that USER has not acknowledged."""

    @property
    def agents(self) -> Sequence[AgentLook]: ...
    @property
    def user(self) -> Sequence[MessageLook]: ...


def check_view(view: ViewLook, seen: Seen, excused: Collection[str] = ()) -> None:
    """Compare a view with the logs while the system runs: it shows nothing they do not hold."""
    for look in view.agents:
        if look.session_id in excused:
            continue
        fold = seen.agents.get(look.agent_id)
        if fold is None:
            raise Invented("the view shows an agent that no log holds", agent=look)
        turns = tuple(fold.turns)
        if tuple(look.turns) != turns[: len(look.turns)]:
            raise OutOfSync("the view shows other turns than the log", view=look, log=turns)
        for key in look.pending:
            if key not in fold.enqueued:
                raise Invented("the view shows a message that no log holds", agent=look, key=key)


def check_view_at_rest(view: ViewLook, seen: Seen, excused: Collection[str] = ()) -> None:
    """Compare a view with the logs when nothing is under way: they are equal.

    A session that has stopped is left out: its log may hold a line that never became durable.
    """
    check_view(view, seen, excused)
    shown = {look.agent_id for look in view.agents}
    hidden = [
        agent_id
        for agent_id, fold in seen.agents.items()
        if not fold.ended and agent_id not in shown and fold.session_id not in excused
    ]
    if hidden:
        raise OutOfSync("the view does not show a living agent", agents=hidden)
    for look in view.agents:
        if look.stopped or look.session_id in excused:
            continue
        fold = seen.agents[look.agent_id]
        expected = _expected(seen, fold)
        actual = {
            "session_id": look.session_id,
            "name": look.name,
            "parent_id": look.parent_id,
            "alive": look.alive,
            "turns": tuple(look.turns),
            "pending": tuple(look.pending),
            "metadata": dict(look.metadata),
        }
        if look.alive:
            actual["gated"] = look.gated
            expected["gated"] = fold.gated
        if actual != expected:
            wrong = [name for name, value in actual.items() if value != expected[name]]
            raise OutOfSync(
                f"the view and the log differ in {', '.join(wrong)}", actual=actual,
                expected=expected,
            )  # fmt: skip
        if look.alive and look.permits < fold.unused_permits:
            raise OutOfSync(
                "the view shows fewer permits than the log", view=look, log=fold.unused_permits
            )
    user = [message.message_id for message in view.user]
    if seen.user.session_id not in excused and user != list(seen.user.pending):
        raise OutOfSync("the view shows USER other messages", actual=user, log=seen.user.pending)


def check_quiet(
    view: ViewLook,
    seen: Seen,
    now_ns: int,
    excused: Collection[str] = (),
    held: Collection[str] = (),
) -> None:
    """When no fault is left and nothing moves, all accepted work is done (V-9).

    What a gate, a stopped session or the resume policy (``held``) holds back may wait.
    """
    check_view_at_rest(view, seen, excused)
    absent = {*excused, *(look.session_id for look in view.agents if look.stopped)}
    check_promises(seen, absent)
    check_due(seen, now_ns, absent)
    for look in view.agents:
        if look.session_id in absent or look.session_id in held or not look.alive:
            continue
        if look.pending and (look.permits or not look.gated):
            raise Starved("an agent has messages and does not run", agent=look)


def _expected(seen: Seen, fold: Fold) -> dict[str, object]:
    agent = fold.agent
    assert agent is not None
    parent = seen.sessions.get(agent.parent_session_id or "")
    return {
        "session_id": fold.session_id,
        "name": agent.name,
        "parent_id": parent.fold.agent_id if parent else None,
        "alive": not fold.ended,
        "turns": tuple(fold.turns),
        "pending": tuple(fold.pending),
        "metadata": fold.metadata,
    }
