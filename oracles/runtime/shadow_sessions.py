"""What a session store must hold, from the specification (S-20…S-24, Y7, R8) alone.

Each session is a record that is replaced as a whole; the ids come from the store, so a
session is known by a key that the creator chose. Recovery suspends what was active. A
record may be missing only when the store says so, and only while the disk is damaged.
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
    """What a record says beside its id and its key."""

    provider_name: str
    state: str
    blob: bytes


class StoredSession(NamedTuple):
    """One record that the store shows."""

    session_id: str
    key: str
    content: StoredContent


@dataclass(slots=True)
class _Session:
    record: ShadowFile[StoredContent] = field(default_factory=ShadowFile)
    session_id: str = ""


def suspended(content: StoredContent) -> StoredContent:
    """Return what recovery makes of a record."""
    return content._replace(state=SUSPENDED) if content.state == ACTIVE else content


class ShadowSessions:
    """The specification of one session store, run beside it."""

    __slots__ = ("_excused", "_sessions")

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._excused: set[str] = set()

    @property
    def in_flight(self) -> int:
        """How many sessions have an operation whose outcome is open."""
        return sum(len(session.record.allowed) > 1 for session in self._sessions.values())

    def begin(self, key: str, content: StoredContent) -> None:
        """A creation or a save was called; one that raises an ``OSError`` stays in flight."""
        self._sessions.setdefault(key, _Session()).record.begin(content)

    def acknowledge(self, key: str, session_id: str) -> None:
        """The call that was begun last for this key returned."""
        session = self._sessions[key]
        session.record.acknowledge()
        session.session_id = session_id

    def excuse(self, session_id: str) -> None:
        """The store has told that this session's record was damaged, and the disk was."""
        self._excused.add(session_id)

    def is_excused(self, session_id: str) -> bool:
        """Whether this session's record was lost with a word."""
        return session_id in self._excused

    def knows(self, session_id: str) -> bool:
        """Whether a session of this id was acknowledged, or stored after a recovery."""
        return any(session.session_id == session_id for session in self._sessions.values())

    def check_one(self, stored: StoredSession) -> None:
        """Compare with one record that the running store shows; raise a ``Violation``."""
        session = self._known(stored)
        session.record.check(stored.content, f"session {stored.key}")

    def check(self, records: Sequence[StoredSession], unreadable: Collection[str] = ()) -> None:
        """Compare with all records of the running store.

        ``unreadable`` are ids of which the store has said that it cannot tell just now.
        """
        self._compare(records, unreadable, settle=False)

    def settle(self, records: Sequence[StoredSession], unreadable: Collection[str] = ()) -> bool:
        """Compare with the first snapshot after a recovery, and settle what was in flight.

        Returns whether something in flight turned out to have happened.
        """
        for stored in records:
            if stored.content.state == ACTIVE:
                raise InvalidState("a session is active after recovery", session=stored)
        for session in self._sessions.values():
            if session.session_id in self._silent(unreadable):
                # The recovery of this one failed on its way: it was suspended, or it was not.
                for content in session.record.allowed:
                    if content is not None:
                        session.record.begin(suspended(content))
            else:
                session.record.change(suspended)
        return self._compare(records, unreadable, settle=True)

    def _compare(
        self, records: Sequence[StoredSession], unreadable: Collection[str], *, settle: bool
    ) -> bool:
        shown: dict[str, StoredContent] = {}
        for stored in records:
            if stored.key in shown:
                raise Duplicated("one creation has made two sessions", session=stored)
            self._known(stored)
            shown[stored.key] = stored.content
        ids = {stored.key: stored.session_id for stored in records}
        happened = False
        silent = self._excused | self._silent(unreadable)
        for key, session in self._sessions.items():
            if key not in shown and session.session_id in silent:
                continue
            actual = shown.get(key)
            if actual is None and None not in session.record.allowed:
                raise LostAck(
                    "an acknowledged session is gone", key=key, allowed=session.record.allowed
                )
            if settle:
                happened |= session.record.settle(actual, f"session {key}")
                session.session_id = ids.get(key, "")
            else:
                session.record.check(actual, f"session {key}")
        return happened

    def _silent(self, unreadable: Collection[str]) -> set[str]:
        """Return ``unreadable``, and "" if one of them may be a creation in flight."""
        unknown = any(not self.knows(identity) for identity in unreadable)
        return {*unreadable, ""} if unknown else set(unreadable)

    def _known(self, stored: StoredSession) -> _Session:
        session = self._sessions.get(stored.key)
        if session is None or (session.session_id and session.session_id != stored.session_id):
            raise Phantom("a session is there that nobody created", session=stored)
        return session
