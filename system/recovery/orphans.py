"""Sessions whose log does not say which agent they are, and what the others know of them. Pure.

A crash leaves such a session when it comes before the end of a birth: it is unborn if a turn
has promised it, and else an orphan. Damage leaves one, too, and then it must neither be removed
nor be born a second time: its work was accepted (S-28, promise 6). Who has stood as an agent
has left traces elsewhere: in its record, in its children, in the messages that it sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from system.agents.history import AgentFacts, History, objects
from system.agents.provider_state import ProviderState
from system.sessions.session import SessionRecord, SessionState
from system.storage.log_report import LogReport


class Verdict(Enum):
    """What becomes of a session without ``agent.created``."""

    NAMED = auto()
    """Its log is damaged; the promise says what is missing."""
    UNCREATED = auto()
    """It was promised; what is missing is added to what is there."""
    LOST = auto()
    """It was an agent, and cannot be served; what is left is kept."""
    ORPHAN = auto()
    """It never became an agent, and is removed."""


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What is left of a session; ``record_is_damaged`` when there is one that cannot be read."""

    history: History
    log_is_damaged: bool
    record: SessionRecord | None
    record_is_damaged: bool


class SessionIndex:
    """What all ``histories`` (by session id) say of one another."""

    def __init__(self, histories: Mapping[str, History]) -> None:
        self.promised = {
            str(spawn.get("session_id")): AgentFacts(
                str(spawn.get("agent_id")), str(spawn.get("name")), session_id,
                str(spawn.get("instructions")), None,
            )
            for session_id, history in histories.items()
            for turn in history.completed
            for spawn in objects(turn.get("spawned"))
        }  # fmt: skip
        self.senders = {sender for history in histories.values() for sender in history.senders}
        self._parents = {
            history.agent.parent_session_id
            for history in histories.values()
            if history.agent is not None
        }

    def verdict_on(self, session_id: str, remains: SessionEvidence) -> Verdict:
        """Judge one session that has no ``agent.created``."""
        promised = self.promised.get(session_id)
        if promised is not None and remains.log_is_damaged and remains.history.session is not None:
            return Verdict.NAMED
        # A record is replaced at once, so no crash damages one.
        if remains.log_is_damaged or remains.record_is_damaged:
            return Verdict.LOST
        if self._has_stood(session_id, promised) or _has_been_used(remains.record, promised):
            return Verdict.LOST
        return Verdict.ORPHAN if promised is None else Verdict.UNCREATED

    def _has_stood(self, session_id: str, promised: AgentFacts | None) -> bool:
        return session_id in self._parents or (
            promised is not None and promised.agent_id in self.senders
        )


def _has_been_used(record: SessionRecord | None, promised: AgentFacts | None) -> bool:
    """Whether a record is no longer as it was at the birth of its agent."""
    if record is None:
        return False
    if promised is not None:
        # A child has no conversation before its first turn.
        return bool(record.provider_state_blob) or record.state is not SessionState.SUSPENDED
    turns = ProviderState.of_encoded(record.provider_state_blob).turns
    return bool(turns) or record.state is not SessionState.ACTIVE


def is_damaged(told: LogReport) -> bool:
    """Say whether bytes of a log are gone that no crash can have taken."""
    return bool(told.missing) or any(not damage.tail for damage in told.damaged)
