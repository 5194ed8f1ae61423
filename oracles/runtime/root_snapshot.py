"""The contents of a root, read from its files as plain data.

Reading never raises for damaged or missing files; the laws judge the snapshot. A reader caches
parsed logs, so that reading a log that has grown costs little. A snapshot never changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import Any, Final, NamedTuple

from oracles.runtime.log_reader import read_log, unsealed
from oracles.runtime.log_records import USER
from oracles.runtime.session_state import SessionState

USER_LOG: Final = "user/events.jsonl"
_SESSION_PATH: Final = re.compile(r"agents/([^/]+)/(.*)")
_READ: Final = re.compile(
    r"(?:root\.json|runtime\.lock"
    r"|(?:user|agents/[0-9a-f]{32})/events\.(?:jsonl|pending)"
    r"|agents/[0-9a-f]{32}/session\.json"
    r"|checkpoint|(?:records|snapshots)/exec-[0-9a-f]{16}\.json|wal/(?:\d{8}\.wal|current)"
    r")(?:\.quarantine\.[1-9][0-9]*)?"
)
_DIRECTORY: Final = re.compile(r"(?:user|agents|agents/[0-9a-f]{32}|records|snapshots|wal)/")
_MOST_CACHED_STATES: Final = 16
_MOST_CACHED_RECORDS: Final = 64


def log_path(session_id: str) -> str:
    """Return the path of a session's log, relative to the root."""
    return f"agents/{session_id}/events.jsonl"


def garbage(paths: Iterable[str]) -> list[str]:
    """Return the paths that no boot will ever read, sorted; directories end with a slash.

    Call it after a recovery: a running process leaves temporaries that the next boot deletes.
    """
    return sorted(filterfalse(_is_read, paths))


# Snapshots of one root contain the same few paths.
@lru_cache(maxsize=256)
def _is_read(path: str) -> bool:
    return bool(_READ.fullmatch(path) or _DIRECTORY.fullmatch(path))


@lru_cache(maxsize=256)
def _session_in(path: str) -> str:
    """Return the session id in a path, or an empty text."""
    found = _SESSION_PATH.match(path)
    return found[1] if found else ""


class SessionSnapshot(NamedTuple):
    """One directory under ``agents``; ``record`` is the object in its ``session.json``.

    ``record_reason`` says why there is no record, and is empty if there is one.
    """

    session_id: str
    state: SessionState
    record: Mapping[str, Any]
    record_reason: str


class RootSnapshot(NamedTuple):
    """The contents of a root; ``files`` are by path relative to it.

    ``sessions`` are by session id, sorted, and ``agents`` by agent id. ``duplicates`` are
    sessions whose agent id an earlier session has. ``excused`` are the ids of damaged sessions,
    to which no law applies.
    """

    files: Mapping[str, bytes]
    user: SessionState
    sessions: Mapping[str, SessionSnapshot]
    agents: Mapping[str, SessionState]
    duplicates: tuple[str, ...]
    excused: Collection[str] = ()

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> RootSnapshot:
        """Read these files with a reader of their own."""
        return SnapshotReader().read(files)

    def excusing(self, session_ids: Collection[str]) -> RootSnapshot:
        """Return this snapshot with these sessions excused."""
        return self._replace(excused=session_ids)

    @property
    def judged(self) -> Iterator[SessionState]:
        """The states of the agents that are not excused."""
        return (state for state in self.agents.values() if state.session_id not in self.excused)

    @property
    def judged_logs(self) -> Iterator[SessionState]:
        """The states of USER and of the agents that are not excused."""
        logs = (self.user, *self.agents.values())
        return (state for state in logs if state.session_id not in self.excused)

    def state_of(self, owner: str) -> SessionState | None:
        """Return the state of an agent id or of USER, or None if there is none."""
        return self.user if owner == USER else self.agents.get(owner)

    def session_of(self, agent_id: str) -> str:
        """Return the session id of an agent, or an empty text."""
        state = self.agents.get(agent_id)
        return state.session_id if state else ""

    @property
    def active_reminders(self) -> frozenset[str]:
        """The reminders of living agents that were neither enqueued nor cancelled."""
        return frozenset(
            key
            for state in self.agents.values()
            if not state.ended
            for key in state.reminders
            if key not in state.enqueued and key not in state.cancelled
        )


class SnapshotReader:
    """Reads successive snapshots of one root, or of several similar ones.

    It keeps the states of the previous snapshot and a few older ones, which serves callers
    that alternate between similar disks.
    """

    __slots__ = ("_cached", "_records", "_states")

    def __init__(self) -> None:
        self._states: dict[str, SessionState] = {}
        self._cached: dict[tuple[str, bytes], SessionState] = {}
        self._records: dict[bytes, dict[str, Any] | str] = {}

    def read(self, files: Mapping[str, bytes]) -> RootSnapshot:
        """Return a snapshot of these files; a path that ends with a slash is an empty directory."""
        ids = set(map(_session_in, files))
        ids.discard("")
        user = self._state(USER_LOG, files)
        states = {USER_LOG: user}
        sessions: dict[str, SessionSnapshot] = {}
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

    def _session(
        self, session_id: str, state: SessionState, files: Mapping[str, bytes]
    ) -> SessionSnapshot:
        raw = files.get(f"agents/{session_id}/session.json")
        if raw is None:
            return SessionSnapshot(session_id, state, {}, "it is missing")
        record = self._record(raw)
        if isinstance(record, str):
            return SessionSnapshot(session_id, state, {}, record)
        return SessionSnapshot(session_id, state, record, "")

    def _state(self, path: str, files: Mapping[str, bytes]) -> SessionState:
        raw = files.get(path, b"")
        before = self._states.get(path)
        if before is not None and before.log.raw == raw:
            return before
        state = self._cached.get((path, raw)) or _read(path, raw, before)
        if state.violation is None:
            if len(self._cached) >= _MOST_CACHED_STATES:
                self._cached.clear()
            self._cached[path, raw] = state
        return state

    def _record(self, raw: bytes) -> dict[str, Any] | str:
        record = self._records.get(raw)
        if record is None:
            if len(self._records) > _MOST_CACHED_RECORDS:
                self._records.clear()
            record = self._records[raw] = unsealed(raw.removesuffix(b"\n"))
        return record


def _read(path: str, raw: bytes, before: SessionState | None) -> SessionState:
    """Return the state of a log; ``before`` is the state of an earlier snapshot of it."""
    if before is None:
        return SessionState(path, read_log(raw))
    log = read_log(raw, before.log)
    return before.extended(log) if raw.startswith(before.log.raw) else SessionState(path, log)
