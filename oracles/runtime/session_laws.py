"""The laws of one session by itself: its log is intact, and its record agrees with the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import UnfinishedTermination
from oracles.violation import CorruptLog, InvalidState

SUSPENDED: Final = "SUSPENDED"
TERMINATED: Final = "TERMINATED"


def check_logs(snapshot: RootSnapshot) -> None:
    """Raise the violation that a log contains in itself; applies at any time."""
    for state in _judged(snapshot):
        if state.violation is not None:
            # A state is judged many times and must not accumulate the tracebacks.
            raise state.violation.with_traceback(None)


def check_intact(snapshot: RootSnapshot) -> None:
    """Require after a recovery that each log consists of lines and nothing else."""
    for state in _judged(snapshot):
        if state.log.reason:
            raise CorruptLog(
                f"a recovered log contains bytes that are not a line: {state.log.reason}",
                path=state.path, lines=len(state.log.lines), unparsed=state.log.unparsed,
            )  # fmt: skip


def check_records(snapshot: RootSnapshot) -> None:
    """Require after a recovery that each record exists and agrees with its log.

    A record is TERMINATED if the log says that the agent has ended, else SUSPENDED.
    """
    for session_id, session in snapshot.sessions.items():
        if session_id in snapshot.excused:
            continue
        if session.record_reason:
            raise InvalidState(
                f"a session record is unusable after recovery: {session.record_reason}",
                session_id=session_id,
            )
        if session.record.get("session_id") != session_id:
            raise InvalidState(
                "a session record names another session", expected=session_id,
                actual=session.record.get("session_id"),
            )  # fmt: skip
        expected = TERMINATED if session.state.ended else SUSPENDED
        recorded = session.record.get("state")
        if recorded != expected:
            raise InvalidState(
                "the state in a session record is not the one that recovery must leave",
                session_id=session_id, expected=expected, actual=recorded,
                ended=session.state.ended,
            )  # fmt: skip
        if session.state.ended and not session.state.finished:
            raise UnfinishedTermination(
                "a committed turn completed its agent, and its log lacks agent.terminated",
                path=session.state.path,
            )


def _judged(snapshot: RootSnapshot) -> Iterator[SessionState]:
    if snapshot.user.session_id not in snapshot.excused:
        yield snapshot.user
    for session in snapshot.sessions.values():
        if session.session_id not in snapshot.excused:
            yield session.state
