"""The specification of a session store.

Each session has a record that is replaced as a whole. The store chooses the session ids, so
the shadow identifies a session by a key that the caller chose. Recovery suspends active
sessions. A record may be missing only if the store reports it, and only if a fault damaged the
disk.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from oracles.shadow_file import ShadowFile
from oracles.violation import Duplicated, InvalidState, LostAck, Phantom

ACTIVE: Final = "ACTIVE"
SUSPENDED: Final = "SUSPENDED"


class StoredContent(NamedTuple):
    """A record without its session id and key."""

    provider_name: str
    state: str
    blob: bytes


class StoredSession(NamedTuple):
    """One record that the store returns."""

    session_id: str
    key: str
    content: StoredContent


@dataclass(slots=True)
class _Session:
    """``session_id`` is empty while the creation is in flight."""

    record: ShadowFile[StoredContent] = field(default_factory=ShadowFile)
    session_id: str = ""


def suspended(content: StoredContent) -> StoredContent:
    """Return the content that recovery leaves of a record."""
    return content._replace(state=SUSPENDED) if content.state == ACTIVE else content


class ShadowSessions:
    """The specification of one session store, run beside it."""

    __slots__ = ("_excused", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._excused: set[str] = set()

    @property
    def in_flight(self) -> int:
        """The number of sessions with an operation in flight."""
        return sum(len(session.record.allowed) > 1 for session in self._sessions.values())

    def begin(self, key: str, content: StoredContent) -> None:
        """Record that a creation or a save was called; it is in flight, even if it fails."""
        self._sessions.setdefault(key, _Session()).record.begin(content)

    def acknowledge(self, key: str, session_id: str) -> None:
        """Record that the call begun last for this key returned."""
        session = self._sessions[key]
        session.record.acknowledge()
        session.session_id = session_id

    def excuse(self, session_id: str) -> None:
        """Excuse a session whose record a fault damaged and the store reported as damaged."""
        self._excused.add(session_id)

    def is_excused(self, session_id: str) -> bool:
        """Return whether this session is excused."""
        return session_id in self._excused

    def knows(self, session_id: str) -> bool:
        """Return whether this id was acknowledged, or found after a recovery."""
        return any(session.session_id == session_id for session in self._sessions.values())

    def check_one(self, stored: StoredSession) -> None:
        """Compare with one record that the running store returns; raise a ``Violation``."""
        session = self._known(stored)
        session.record.check(stored.content, f"session {stored.key}")

    def check(self, records: Sequence[StoredSession], unreadable: Collection[str] = ()) -> None:
        """Compare with all records of the running store; raise a ``Violation``.

        ``unreadable`` are the ids of records that the store reports as unreadable for now.
        """
        self._compare(records, unreadable, settle=False)

    def settle(self, records: Sequence[StoredSession], unreadable: Collection[str] = ()) -> bool:
        """Compare with all records after a recovery, and decide the operations in flight.

        Returns whether an operation in flight took effect; raises a ``Violation``.
        """
        for stored in records:
            if stored.content.state == ACTIVE:
                raise InvalidState("a session is active after recovery", session=stored)
        undecided = self._undecided(unreadable)
        for session in self._sessions.values():
            if session.session_id in undecided:
                # Recovery failed for this session, so the suspension itself is in flight.
                for content in session.record.allowed:
                    if content is not None:
                        session.record.begin(suspended(content))
            else:
                session.record.change(suspended)
        return self._compare(records, unreadable, settle=True)

    def _compare(
        self, records: Sequence[StoredSession], unreadable: Collection[str], *, settle: bool
    ) -> bool:
        found: dict[str, StoredSession] = {}
        for stored in records:
            if stored.key in found:
                raise Duplicated(
                    "one creation has made two sessions",
                    key=stored.key, sessions=(found[stored.key].session_id, stored.session_id),
                )  # fmt: skip
            self._known(stored)
            found[stored.key] = stored
        happened = False
        may_be_missing = self._excused | self._undecided(unreadable)
        for key, session in self._sessions.items():
            actual = found.get(key)
            if actual is None and session.session_id in may_be_missing:
                continue
            if actual is None and None not in session.record.allowed:
                raise LostAck(
                    "an acknowledged session is lost", key=key, allowed=session.record.allowed
                )
            content = actual.content if actual else None
            if settle:
                happened |= session.record.settle(content, f"session {key}")
                session.session_id = actual.session_id if actual else ""
            else:
                session.record.check(content, f"session {key}")
        return happened

    def _undecided(self, unreadable: Collection[str]) -> set[str]:
        """Return ``unreadable``, and "" if one of its ids may be a creation in flight."""
        unknown = any(not self.knows(identity) for identity in unreadable)
        return {*unreadable, ""} if unknown else set(unreadable)

    def _known(self, stored: StoredSession) -> _Session:
        session = self._sessions.get(stored.key)
        if session is None or (session.session_id and session.session_id != stored.session_id):
            raise Phantom("a session exists that was never created", session=stored)
        return session
