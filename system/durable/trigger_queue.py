"""The order in which triggers become due, in memory; it is changed after each commit.

Future triggers are in one heap by ``due_at``. A trigger that is due moves to the heap of its
session, in which the least ``due_at`` plus one second for each point of priority is first. So a
point of priority is worth one second of waiting, and no trigger waits for ever. The heap of a
session that runs no turn is not read. Removed entries stay in a heap until they are first.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, NamedTuple

from system.durable.trigger import Trigger

PRIORITY_S: Final = 1.0


class _Entry(NamedTuple):
    """A PENDING trigger; ``number`` is that of its row, ``version`` that of this entry."""

    due_at: float
    number: int
    version: int
    trigger_id: str
    session_id: str | None
    rank: float


class TriggerQueue:
    """All PENDING triggers of a root by their time; those without a session have their own heap."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._future: list[_Entry] = []
        self._due: dict[str | None, list[tuple[float, int, int, _Entry]]] = {}
        self._newly: dict[str | None, None] = {}
        self._withheld: dict[str, _Entry] = {}
        self._versions = 0

    @property
    def has_withheld(self) -> bool:
        """Whether triggers are withheld."""
        return bool(self._withheld)

    def add(self, trigger: Trigger, number: int) -> None:
        """Add a PENDING trigger with the number of its row, or change its time or session."""
        self._withheld.pop(trigger.id, None)
        rank = trigger.due_at + PRIORITY_S * trigger.priority
        self._versions += 1
        entry = _Entry(trigger.due_at, number, self._versions, trigger.id, trigger.session_id, rank)
        self._entries[trigger.id] = entry
        heappush(self._future, entry)

    def remove(self, trigger_id: str) -> None:
        """Remove a trigger until it is added again."""
        self._entries.pop(trigger_id, None)
        self._withheld.pop(trigger_id, None)

    def withhold(self, trigger_id: str) -> None:
        """Take a trigger out until ``restore``."""
        entry = self._entries.pop(trigger_id, None)
        if entry is not None:
            self._withheld[trigger_id] = entry

    def restore(self) -> None:
        """Put all withheld triggers back."""
        for trigger_id, entry in self._withheld.items():
            self._versions += 1
            self._entries[trigger_id] = again = entry._replace(version=self._versions)
            heappush(self._future, again)
        self._withheld.clear()

    def take_due_sessions(self, now: float) -> list[str | None]:
        """Return the sessions of which a trigger has become due since the last call.

        ``now`` is in seconds since 1970. Sessions of earlier calls are not repeated, so a session
        that runs no turn costs nothing. None, at the end, means that triggers wait to be routed;
        it is returned by every call until they are routed.
        """
        self._move(now)
        newly, self._newly = self._newly, {}
        newly.pop(None, None)
        return [session for session in (*newly, None) if self._first(session, now) is not None]

    def next_of(self, session_id: str | None, now: float) -> str | None:
        """Return the due trigger of a session that is next to be claimed, or None."""
        self._move(now)
        return self._first(session_id, now)

    def next_due_at(self) -> float | None:
        """Return when the next future trigger becomes due, or None."""
        while self._future:
            entry = self._future[0]
            if self._entries.get(entry.trigger_id) is entry:
                return entry.due_at
            heappop(self._future)
        return None

    def _move(self, now: float) -> None:
        while self._future and self._future[0].due_at <= now:
            entry = heappop(self._future)
            if self._entries.get(entry.trigger_id) is entry:
                ranked = self._due.setdefault(entry.session_id, [])
                heappush(ranked, (entry.rank, entry.number, entry.version, entry))
                self._newly[entry.session_id] = None

    def _first(self, session_id: str | None, now: float) -> str | None:
        ranked = self._due.get(session_id)
        while ranked:
            entry = ranked[0][-1]
            is_pending = self._entries.get(entry.trigger_id) is entry
            if is_pending and entry.due_at <= now:
                return entry.trigger_id
            heappop(ranked)
            if is_pending:
                # The wall clock was ahead, and was set back.
                heappush(self._future, entry)
        self._due.pop(session_id, None)
        return None
