"""Sessions without ``agent.created``: orphans, children to be created, or losses.

A crash during the creation of an agent leaves such a session. It is created if a turn has spawned
it, and otherwise it is an orphan. Damage leaves such sessions too, and because of damage no agent
that has existed may be deleted or created again, because its work was accepted. An agent that has
existed is recognised by its record, its children, or the messages that it has sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from system.agents.history import History
from system.agents.provider_state import ProviderState
from system.agents.session_data import AgentData
from system.sessions.session import SessionRecord, SessionState
from system.storage.log_report import LogReport


class Verdict(Enum):
    """The decision on a session without ``agent.created``."""

    NAMED = auto()
    """Its log is damaged; the outbox of its parent supplies the missing data."""
    UNCREATED = auto()
    """A turn has spawned it; the missing lines are added to those that it has."""
    LOST = auto()
    """It was an agent, and cannot be read; its files are kept."""
    ORPHAN = auto()
    """It never became an agent, and is removed."""


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """The files of one session; ``record_is_damaged``: it has a record that cannot be read."""

    history: History
    log_is_damaged: bool
    record: SessionRecord | None
    record_is_damaged: bool


class SessionIndex:
    """The sessions, senders and parents named in ``histories`` (by session id).

    ``spawned`` has the data of each spawned child by session id. ``created`` are the children
    that, according to their parent's log, were created.
    """

    def __init__(self, histories: Mapping[str, History]) -> None:
        self.spawned = {
            spawn.session_id: AgentData(
                spawn.agent_id, spawn.name, session_id, spawn.instructions, None
            )
            for session_id, history in histories.items()
            for spawn in history.children.values()
        }
        undispatched = {
            spawn.session_id
            for history in histories.values()
            for seq, turn in history.outbox.items()
            if seq > history.dispatched
            for spawn in turn.outbox.spawned
        }
        self.created = self.spawned.keys() - undispatched
        self.senders = {sender for history in histories.values() for sender in history.senders}
        self._parents = {
            history.agent.parent_session_id
            for history in histories.values()
            if history.agent is not None
        }

    def verdict_on(self, session_id: str, evidence: SessionEvidence) -> Verdict:
        """Decide on one session that has no ``agent.created``."""
        spawned = self.spawned.get(session_id)
        has_session = evidence.history.session is not None
        if spawned is not None and evidence.log_is_damaged and has_session:
            return Verdict.NAMED
        # A record is replaced atomically, so no crash damages one.
        if evidence.log_is_damaged or evidence.record_is_damaged:
            return Verdict.LOST
        if self._has_acted(session_id, spawned) or _was_used(evidence.record, spawned):
            return Verdict.LOST
        return Verdict.ORPHAN if spawned is None else Verdict.UNCREATED

    def _has_acted(self, session_id: str, spawned: AgentData | None) -> bool:
        return (
            session_id in self._parents
            or session_id in self.created
            or (spawned is not None and spawned.agent_id in self.senders)
        )


def _was_used(record: SessionRecord | None, spawned: AgentData | None) -> bool:
    """Whether a record differs from that of a new agent."""
    if record is None:
        return False
    if spawned is not None:
        # A child has no conversation before its first turn.
        return bool(record.provider_state_blob) or record.state is not SessionState.SUSPENDED
    turns = ProviderState.of_encoded(record.provider_state_blob).turns
    return bool(turns) or record.state is not SessionState.ACTIVE


def is_damaged(report: LogReport) -> bool:
    """Whether a log has lost bytes that no crash can remove."""
    return bool(report.missing) or any(not damage.tail for damage in report.damaged)
