"""The laws of the tree: agents have unique ids and names, living parents, and act on children.

A child exists only if a committed turn of its parent spawned it, and is gated, ungated and
permitted only by committed turns of its parent.
"""

from __future__ import annotations

from oracles.runtime.log_records import AgentRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import BrokenTree, DuplicateName, ForbiddenControl
from oracles.violation import Duplicated, Phantom, Resurrected, TornRecord


def check_tree(snapshot: RootSnapshot) -> None:
    """Require unique ids, unique names of living agents, and parents that exist and live."""
    if snapshot.duplicates:
        raise Duplicated("two sessions have the same agent id", sessions=snapshot.duplicates)
    if snapshot.contradicted:
        raise Resurrected(
            "a session that was archived has other lines again", sessions=snapshot.contradicted
        )
    for state in snapshot.judged:
        for session_id in sorted(state.forgotten_children - set(snapshot.excused)):
            if session_id not in snapshot.collected:
                raise BrokenTree(
                    "a snapshot has forgotten a child that was not collected", path=state.path,
                    session_id=session_id,
                )  # fmt: skip
    names: dict[str, SessionState] = {}
    for state in snapshot.agents.values():
        agent = _agent(state)
        _check_parent(snapshot, state)
        if state.ended:
            continue
        other = names.setdefault(agent.name, state)
        if other is not state:
            raise DuplicateName(
                "two living agents have the same name", name=agent.name,
                paths=(other.path, state.path),
            )  # fmt: skip


def check_orphans(snapshot: RootSnapshot) -> None:
    """Require after a recovery that each session belongs to an agent."""
    for session_id, session in snapshot.sessions.items():
        if session.state.agent is None and session_id not in snapshot.excused:
            raise BrokenTree("recovery left a session without agent.created", session_id=session_id)


def check_children(snapshot: RootSnapshot) -> None:
    """Require that each child was spawned by a committed turn, exactly as it exists."""
    for state in snapshot.agents.values():
        agent = _agent(state)
        if agent.parent_session_id is None or agent.parent_session_id in snapshot.excused:
            continue
        parent = snapshot.sessions[agent.parent_session_id].state
        spawns = parent.bootstraps.values()
        spawn = next((s for s in spawns if s.session_id == state.session_id), None)
        if spawn is None:
            raise Phantom(
                "a child exists that no committed turn of its parent spawned",
                agent=agent, parent=parent.path,
            )  # fmt: skip
        expected = (spawn.agent_id, spawn.name, spawn.instructions, spawn.provider, spawn.model)
        created = state.created
        actual = (
            agent.agent_id, agent.name, agent.instructions, created["provider"], created["model"]
        )  # fmt: skip
        if actual != expected:
            raise TornRecord(
                "a child differs from the one that its parent's turn spawned",
                expected=expected, actual=actual,
            )  # fmt: skip


def check_controls(snapshot: RootSnapshot) -> None:
    """Require that each applied control was ordered by a committed turn of the parent."""
    for state in snapshot.agents.values():
        for key, (_, op, by) in state.applied_controls.items():
            owner = snapshot.agents.get(by)
            if owner is None and not snapshot.excused:
                raise ForbiddenControl(
                    "an agent applied a control of an agent that does not exist",
                    path=state.path, control_id=key, by=by,
                )  # fmt: skip
            if owner is None or owner.session_id in snapshot.excused:
                continue
            control = owner.controls.get(key)
            if control is None or control.target != state.agent_id:
                raise ForbiddenControl(
                    "an agent applied a control that no committed turn ordered for it",
                    path=state.path, control_id=key, ordered=control,
                )  # fmt: skip
            if control.op != op:
                raise TornRecord(
                    "an agent applied another control than the ordered one",
                    path=state.path, control_id=key, ordered=control.op, applied=op,
                )  # fmt: skip
            if _agent(state).parent_session_id != owner.session_id:
                raise ForbiddenControl(
                    "an agent applied a control of an agent other than its parent",
                    path=state.path, control_id=key, by=by,
                )  # fmt: skip


def _agent(state: SessionState) -> AgentRecord:
    assert state.agent is not None, "states in ``agents`` have an agent"
    return state.agent


def _check_parent(snapshot: RootSnapshot, state: SessionState) -> None:
    agent = _agent(state)
    parent_id = agent.parent_session_id
    if parent_id is None or parent_id in snapshot.excused:
        return
    parent = snapshot.sessions.get(parent_id)
    if parent is None or parent.state.agent is None:
        raise BrokenTree("the parent of an agent does not exist", agent=agent, parent=parent_id)
    if parent.state.ended and not state.ended:
        raise BrokenTree(
            "a living agent has a parent that has ended", agent=agent, parent=parent_id
        )
    visited = {state.path}
    while parent is not None and parent.state.agent is not None:
        if parent.state.path in visited:
            raise BrokenTree("an agent is its own ancestor", agent=agent)
        visited.add(parent.state.path)
        parent = snapshot.sessions.get(parent.state.agent.parent_session_id or "")
