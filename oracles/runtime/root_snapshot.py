"""Everything that a root holds on disk, as plain data: one agent_view.

Paths are relative to the root. A agent_view never raises for what it finds: the laws judge it.
A reader keeps what it has read, so that the next agent_view at grown logs costs little; looks
that were taken stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import Any, Final, NamedTuple

from oracles.runtime.log_reader import read_log, unsealed
from oracles.runtime.session_state import SessionState

USER_LOG: Final = "user/events.jsonl"
_SESSION_PATH: Final = re.compile(r"agents/([^/]+)/(.*)")
_READ: Final = re.compile(
    r"(?:root\.json|runtime\.lock"
    r"|(?:user|agents/[0-9a-f]{32})/events\.(?:jsonl|pending)"
    r"|agents/[0-9a-f]{32}/session\.json)(?P<aside>\.quarantine\.[1-9][0-9]*)?"
)
_DIRECTORY: Final = re.compile(r"(?:user|agents|agents/[0-9a-f]{32})/")
_MOST_CACHED: Final = 16


def log_path(session_id: str) -> str:
    """Return where the log of a session is."""
    return f"agents/{session_id}/events.jsonl"


def garbage(paths: Iterable[str]) -> list[str]:
    """Return those paths that nothing will ever read, sorted; directories end with a slash.

    Judge after a recovery: a process may leave temporaries, the next boot sweeps them.
    """
    return sorted(filterfalse(_is_read, paths))


# Looks at one root meet the same few paths again and again.
@lru_cache(maxsize=256)
def _is_read(path: str) -> bool:
    return bool(_READ.fullmatch(path) or _DIRECTORY.fullmatch(path))


@lru_cache(maxsize=256)
def _session_in(path: str) -> str:
    """Return the session id in a path, or an empty text."""
    found = _SESSION_PATH.match(path)
    return found[1] if found else ""


class Session(NamedTuple):
    """One directory under ``agents``; ``record`` is the object in ``session.json``.

    ``record_reason`` says why there is none, and is empty when there is one.
    """

    session_id: str
    state: SessionState
    record: Mapping[str, Any]
    record_reason: str


class RootSnapshot(NamedTuple):
    """One agent_view at a root. ``sessions`` is by session id, sorted; ``agents`` by agent id.

    ``duplicates`` are sessions that claim an agent id that another one has.
    """

    files: Mapping[str, bytes]
    user: SessionState
    sessions: Mapping[str, Session]
    agents: Mapping[str, SessionState]
    duplicates: tuple[str, ...]

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> RootSnapshot:
        """Read files by a reader of their own."""
        return SnapshotReader().read(files)

    def state_of(self, owner: str) -> SessionState | None:
        """Return the state of an agent id, or of USER."""
        return self.user if owner == "USER" else self.agents.get(owner)

    @property
    def active_reminders(self) -> frozenset[str]:
        """The reminders of living agents that have not come, and were not cancelled."""
        return frozenset(
            key
            for state in self.agents.values()
            if not state.ended
            for key in state.reminders
            if key not in state.enqueued and key not in state.cancelled
        )

    def session_of(self, agent_id: str) -> str:
        """Return an agent's session id, or an empty text."""
        state = self.agents.get(agent_id)
        return state.session_id if state else ""


class SnapshotReader:
    """Reads looks at one root, one after another.

    What it keeps of the last looks is for disks that are nearly the same, and take turns.
    """

    __slots__ = ("_cached", "_records", "_states")

    def __init__(self) -> None:
        self._states: dict[str, SessionState] = {}
        self._cached: dict[tuple[str, bytes], SessionState] = {}
        self._records: dict[bytes, dict[str, Any] | str] = {}

    def read(self, files: Mapping[str, bytes]) -> RootSnapshot:
        """Return what these files say; a path that ends with a slash is an empty directory."""
        ids = set(map(_session_in, files))
        ids.discard("")
        user = self._state(USER_LOG, files)
        states = {USER_LOG: user}
        sessions: dict[str, Session] = {}
        agents: dict[str, SessionState] = {}
        duplicates: list[str] = []
        for session_id in sorted(ids):
            path = log_path(session_id)
            states[path] = state = self._state(path, files)
            sessions[session_id] = self._session(session_id, state, files)
            if state.agent_id in agents:
                duplicates.append(session_id)
            elif state.agent_id:
                agents[state.agent_id] = state
        self._states = states
        return RootSnapshot(files, user, sessions, agents, tuple(duplicates))

    def _session(self, session_id: str, state: SessionState, files: Mapping[str, bytes]) -> Session:
        raw = files.get(f"agents/{session_id}/session.json")
        if raw is None:
            return Session(session_id, state, {}, "it is missing")
        record = self._record(raw)
        if isinstance(record, str):
            return Session(session_id, state, {}, record)
        return Session(session_id, state, record, "")

    def _state(self, path: str, files: Mapping[str, bytes]) -> SessionState:
        raw = files.get(path, b"")
        before = self._states.get(path)
        if before is not None and before.log.raw == raw:
            return before
        state = self._cached.get((path, raw)) or _read(path, raw, before)
        if state.violation is None:
            if len(self._cached) >= _MOST_CACHED:
                self._cached.clear()
            self._cached[path, raw] = state
        return state

    def _record(self, raw: bytes) -> dict[str, Any] | str:
        record = self._records.get(raw)
        if record is None:
            if len(self._records) > 64:
                self._records.clear()
            record = self._records[raw] = unsealed(raw.removesuffix(b"\n"))
        return record


def _read(path: str, raw: bytes, before: SessionState | None) -> SessionState:
    """Return the state of a log; ``before`` is that of an earlier agent_view at it."""
    if before is None:
        return SessionState(path, read_log(raw))
    log = read_log(raw, before.log)
    return before.extended(log) if raw.startswith(before.log.raw) else SessionState(path, log)
