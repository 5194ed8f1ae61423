"""V-1, V-2, V-3, V-5: logs are logs, records agree with them, the tree is a tree."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from oracles.runtime.fold import Fold
from oracles.runtime.seen import Seen
from oracles.violation import (
    BrokenTree,
    CorruptLog,
    Duplicated,
    InvalidState,
    NameTwice,
    UnfinishedEnd,
)

STATES: Final = frozenset(("SUSPENDED", "TERMINATED"))
"""What a record may say after a recovery; CREATED and ACTIVE are of a running system."""


def check_logs(seen: Seen, excused: Collection[str] = ()) -> None:
    """Raise what a log has broken by itself; holds at every look, also at a running system."""
    for fold in (seen.user, *(session.fold for session in seen.sessions.values())):
        if fold.violation is not None and fold.session_id not in excused:
            # A fold may be judged many times, and must not keep everybody who did.
            raise fold.violation.with_traceback(None)


def check_whole(seen: Seen, excused: Collection[str] = ()) -> None:
    """After a recovery each log is lines and nothing else (V-5)."""
    for fold in (seen.user, *(session.fold for session in seen.sessions.values())):
        if fold.log.reason and fold.session_id not in excused:
            raise CorruptLog(
                "a recovered log holds what is no line",
                path=fold.path, reason=fold.log.reason, lines=len(fold.log.lines),
                rest=fold.log.rest,
            )  # fmt: skip


def check_records(seen: Seen, excused: Collection[str] = ()) -> None:
    """After a recovery each record is there, suspended, or terminated iff the log ended."""
    for session_id, session in seen.sessions.items():
        if session_id in excused:
            continue
        state = session.record.get("state")
        if session.record_reason or session.record.get("session_id") != session_id:
            raise InvalidState(
                "a session has no record of its own",
                session_id=session_id, reason=session.record_reason, record=session.record,
            )  # fmt: skip
        if state not in STATES:
            raise InvalidState(
                "a session is in a state that recovery must not leave",
                session_id=session_id, state=state,
            )  # fmt: skip
        if (state == "TERMINATED") != bool(session.fold.ended):
            raise InvalidState(
                "a record and its log do not agree on the end",
                session_id=session_id, state=state, ended=session.fold.ended,
            )  # fmt: skip
        if session.fold.ended and not session.fold.finished:
            raise UnfinishedEnd(
                "a turn ended its agent, and no line says so", path=session.fold.path
            )


def check_tree(seen: Seen, excused: Collection[str] = ()) -> None:
    """Agents have ids and living names of their own, and parents that live while they do."""
    if seen.twins:
        raise Duplicated("two sessions belong to one agent", sessions=seen.twins)
    names: dict[str, Fold] = {}
    for fold in seen.agents.values():
        assert fold.agent is not None
        _check_parent(seen, fold, excused)
        if fold.ended:
            continue
        other = names.setdefault(fold.agent.name, fold)
        if other is not fold:
            raise NameTwice(
                "two living agents have one name", name=fold.agent.name,
                paths=(other.path, fold.path),
            )  # fmt: skip


def check_orphans(seen: Seen, excused: Collection[str] = ()) -> None:
    """After a recovery each session belongs to an agent."""
    for session_id, session in seen.sessions.items():
        if session.fold.agent is None and session_id not in excused:
            raise BrokenTree("a session belongs to no agent", session_id=session_id)


def _check_parent(seen: Seen, fold: Fold, excused: Collection[str]) -> None:
    assert fold.agent is not None
    parent_id = fold.agent.parent_session_id
    if parent_id is None or parent_id in excused:
        return
    parent = seen.sessions.get(parent_id)
    if parent is None or parent.fold.agent is None:
        raise BrokenTree("an agent's parent is not there", agent=fold.agent)
    if parent.fold.ended and not fold.ended:
        raise BrokenTree("an agent outlives its parent", agent=fold.agent, parent=parent_id)
    walked = {fold.path}
    while parent is not None and parent.fold.agent is not None:
        if parent.fold.path in walked:
            raise BrokenTree("an agent is its own ancestor", agent=fold.agent)
        walked.add(parent.fold.path)
        parent = seen.sessions.get(parent.fold.agent.parent_session_id or "")
