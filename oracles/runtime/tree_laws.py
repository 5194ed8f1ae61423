"""V-1, V-2, V-3, V-5: logs are logs, records agree with them, the tree is a tree."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import BrokenTree, DuplicateName, UnfinishedTermination
from oracles.violation import CorruptLog, Duplicated, InvalidState

STATES: Final = frozenset(("SUSPENDED", "TERMINATED"))
"""What a record may say after a recovery; CREATED and ACTIVE are of a running system."""


def check_logs(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise what a log has broken by itself; holds at every snapshot, also at a running system."""
    for state in (snapshot.user, *(session.state for session in snapshot.sessions.values())):
        if state.violation is not None and state.session_id not in excused:
            # A state may be judged many times, and must not keep everybody who did.
            raise state.violation.with_traceback(None)


def check_whole(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """After a recovery each log is lines and nothing else (V-5)."""
    for state in (snapshot.user, *(session.state for session in snapshot.sessions.values())):
        if state.log.reason and state.session_id not in excused:
            raise CorruptLog(
                "a recovered log holds what is no line",
                path=state.path, reason=state.log.reason, lines=len(state.log.lines),
                rest=state.log.rest,
            )  # fmt: skip


def check_records(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """After a recovery each record is there, suspended, or terminated iff the log ended."""
    for session_id, session in snapshot.sessions.items():
        if session_id in excused:
            continue
        recorded = session.record.get("state")
        if session.record_reason or session.record.get("session_id") != session_id:
            raise InvalidState(
                "a session has no record of its own",
                session_id=session_id, reason=session.record_reason, record=session.record,
            )  # fmt: skip
        if recorded not in STATES:
            raise InvalidState(
                "a session is in a state that recovery must not leave",
                session_id=session_id, state=recorded,
            )  # fmt: skip
        if (recorded == "TERMINATED") != bool(session.state.ended):
            raise InvalidState(
                "a record and its log do not agree on the end",
                session_id=session_id, state=recorded, ended=session.state.ended,
            )  # fmt: skip
        if session.state.ended and not session.state.finished:
            raise UnfinishedTermination(
                "a turn ended its agent, and no line says so", path=session.state.path
            )


def check_tree(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Agents have ids and living names of their own, and parents that live while they do."""
    if snapshot.duplicates:
        raise Duplicated("two sessions belong to one agent", sessions=snapshot.duplicates)
    names: dict[str, SessionState] = {}
    for state in snapshot.agents.values():
        assert state.agent is not None
        _check_parent(snapshot, state, excused)
        if state.ended:
            continue
        other = names.setdefault(state.agent.name, state)
        if other is not state:
            raise DuplicateName(
                "two living agents have one name", name=state.agent.name,
                paths=(other.path, state.path),
            )  # fmt: skip


def check_orphans(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """After a recovery each session belongs to an agent."""
    for session_id, session in snapshot.sessions.items():
        if session.state.agent is None and session_id not in excused:
            raise BrokenTree("a session belongs to no agent", session_id=session_id)


def _check_parent(snapshot: RootSnapshot, state: SessionState, excused: Collection[str]) -> None:
    assert state.agent is not None
    parent_id = state.agent.parent_session_id
    if parent_id is None or parent_id in excused:
        return
    parent = snapshot.sessions.get(parent_id)
    if parent is None or parent.state.agent is None:
        raise BrokenTree("an agent's parent is not there", agent=state.agent)
    if parent.state.ended and not state.ended:
        raise BrokenTree("an agent outlives its parent", agent=state.agent, parent=parent_id)
    walked = {state.path}
    while parent is not None and parent.state.agent is not None:
        if parent.state.path in walked:
            raise BrokenTree("an agent is its own ancestor", agent=state.agent)
        walked.add(parent.state.path)
        parent = snapshot.sessions.get(parent.state.agent.parent_session_id or "")
