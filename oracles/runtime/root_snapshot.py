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
from oracles.runtime.removed_segments import removed_in_time
from oracles.runtime.session_state import SessionState

USER_LOG: Final = "user/events.jsonl"
_SESSION_PATH: Final = re.compile(r"agents/([^/]+)/(.*)")
_READ: Final = re.compile(
    r"(?:root\.json|runtime\.lock|state\.db(?:-wal|-journal)?|archive/[0-9a-f]{32}\.jsonl"
    r"|(?:user|agents/[0-9a-f]{32})/events(?:\.[1-9][0-9]*)?\.jsonl"
    r"|(?:user|agents/[0-9a-f]{32})/events\.pending"
    r"|agents/[0-9a-f]{32}/session\.json"
    r"|checkpoint|records/exec-[0-9a-f]{16}\.json|(?:records|snapshots)/\d{8}\.pack|wal/(?:\d{8}\.wal|current)"
    r")(?:\.quarantine\.[1-9][0-9]*)?"
)
_DIRECTORY: Final = re.compile(
    r"(?:user|archive|agents|agents/[0-9a-f]{32}|records|snapshots|wal)/"
)
_TEMPORARY: Final = re.compile(r"\.tmp\.[0-9a-f]{8}$")
_ARCHIVE: Final = re.compile(r"archive/([0-9a-f]{32})\.jsonl")
_SEGMENT: Final = re.compile(r"(.+/events)\.([1-9][0-9]*)(\.jsonl)")
_MOST_CACHED_STATES: Final = 16
_MOST_CACHED_RECORDS: Final = 64


def log_path(session_id: str) -> str:
    """Return the path of a session's log, relative to the root."""
    return f"agents/{session_id}/events.jsonl"


def garbage(paths: Iterable[str], *, temporaries: bool = True) -> list[str]:
    """Return the paths that no boot will ever read, sorted; directories end with a slash.

    Call it after a recovery: a running process leaves temporaries that the next boot deletes.
    Without ``temporaries`` they are left out: a fault may have refused to remove them.
    """
    unread = filterfalse(_is_read, paths)
    return sorted(path for path in unread if temporaries or not _TEMPORARY.search(path))


# Snapshots of one root contain the same few paths.
@lru_cache(maxsize=256)
def _is_read(path: str) -> bool:
    return bool(_READ.fullmatch(path) or _DIRECTORY.fullmatch(path))


@lru_cache(maxsize=256)
def _session_in(path: str) -> str:
    """Return the session id in a path, or an empty text."""
    found = _SESSION_PATH.match(path)
    return found[1] if found else ""


@lru_cache(maxsize=256)
def _archived_in(path: str) -> str:
    """Return the session id of an archive, or an empty text."""
    found = _ARCHIVE.fullmatch(path)
    return found[1] if found else ""


@lru_cache(maxsize=256)
def _user_segment(path: str) -> int | None:
    """Return the number of a segment of the log of USER."""
    if path == USER_LOG:
        return 0
    segment = _segment_in(path)
    return segment[1] if segment is not None and segment[0] == USER_LOG else None


def _user_path(number: int) -> str:
    return USER_LOG.replace(".jsonl", f".{number}.jsonl") if number else USER_LOG


@lru_cache(maxsize=256)
def _segment_in(path: str) -> tuple[str, int] | None:
    """Return the path of the log of which a path is a later segment, and its number."""
    found = _SEGMENT.fullmatch(path)
    return (found[1] + found[3], int(found[2])) if found else None


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
    sessions whose agent id an earlier session has. ``collected`` are the sessions of which only
    the archive is left, or garbage, and ``contradicted`` those whose files differ from it.
    ``excused`` are the ids of damaged sessions, to which no law applies.
    """

    files: Mapping[str, bytes]
    user: SessionState
    sessions: Mapping[str, SessionSnapshot]
    agents: Mapping[str, SessionState]
    duplicates: tuple[str, ...]
    collected: frozenset[str] = frozenset()
    contradicted: tuple[str, ...] = ()
    excused: Collection[str] = ()

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> RootSnapshot:
        """Read these files with a reader of their own."""
        return SnapshotReader().read(files)

    def excusing(self, session_ids: Collection[str]) -> RootSnapshot:
        """Return this snapshot with these sessions excused; itself if there are none."""
        return self._replace(excused=session_ids) if session_ids or self.excused else self

    def with_ended(self, ended: Collection[str] | None) -> RootSnapshot:
        """Return this snapshot with the sessions that have a row in ``ended`` as collected ones.

        Their directories stay until the next boot if the disk has refused the removal. None means
        that the rows could not be read: any session with an archive may have one.
        """
        if ended is None:
            ended = {archived for path in self.files if (archived := _archived_in(path))}
        return self._replace(collected=self.collected | (self.sessions.keys() & {*ended}))

    @property
    def judged(self) -> Iterator[SessionState]:
        """The states of the agents that are not excused."""
        return (state for state in self.agents.values() if state.session_id not in self.excused)

    @property
    def judged_logs(self) -> Iterator[SessionState]:
        """The states of USER and of the agents that are not excused."""
        logs = (self.user, *self.agents.values())
        return (state for state in logs if state.session_id not in self.excused)

    @property
    def kept_logs(self) -> Iterator[SessionState]:
        """The judged logs that are not only in the archive; a boot reads them."""
        return (state for state in self.judged_logs if state.session_id not in self.collected)

    def state_of(self, owner: str) -> SessionState | None:
        """Return the state of an agent id or of USER, or None if there is none."""
        return self.user if owner == USER else self.agents.get(owner)

    def session_of(self, agent_id: str) -> str:
        """Return the session id of an agent, or an empty text."""
        state = self.agents.get(agent_id)
        return state.session_id if state else ""

    def raw_log(self, path: str) -> bytes | None:
        """Return the bytes of all segments of a log, or None if there is none.

        While the files of an agent are being removed, its archive is its log.
        """
        session_id = path.split("/")[-2]
        if path == USER_LOG:
            # Its first segment may have been removed in time.
            return self.user.log.raw or None
        session = self.sessions.get(session_id)
        is_there = path in self.files or f"archive/{session_id}.jsonl" in self.files
        return session.state.log.raw if session is not None and is_there else None

    @property
    def active_reminders(self) -> frozenset[str]:
        """The reminders of living agents that are still to come."""
        return frozenset(
            key
            for state in self.agents.values()
            if not state.ended
            for key in state.active_reminders
        )


class SnapshotReader:
    """Reads successive snapshots of one root, or of several similar ones.

    It keeps the states of the previous snapshot and a few older ones, which serves callers
    that alternate between similar disks.
    """

    __slots__ = ("_cached", "_records", "_states", "_user_segments")

    def __init__(self) -> None:
        self._user_segments: dict[int, bytes] = {}
        self._states: dict[str, SessionState] = {}
        self._cached: dict[tuple[str, bytes], SessionState] = {}
        self._records: dict[bytes, dict[str, Any] | str] = {}

    def read(self, files: Mapping[str, bytes], now_ns: int = 0) -> RootSnapshot:
        """Return a snapshot of these files; a path that ends with a slash is an empty directory.

        ``now_ns`` is the time in nanoseconds since 1970; without it nothing is old.
        """
        present = set(map(_session_in, files)) - {""}
        archives = {archived: path for path in files if (archived := _archived_in(path))}
        logs = _joined(self._with_removed(files, now_ns))
        logs, contradicted = _with_archives(logs, archives)
        ids = present | archives.keys()
        user = self._state(USER_LOG, logs)
        states = {USER_LOG: user}
        sessions: dict[str, SessionSnapshot] = {}
        agents: dict[str, SessionState] = {}
        duplicates: list[str] = []
        for session_id in sorted(ids):
            path = log_path(session_id)
            states[path] = state = self._state(path, logs)
            sessions[session_id] = (
                self._session(session_id, state, files)
                if session_id in present
                else SessionSnapshot(session_id, state, _archived_record(session_id), "")
            )
            if state.agent_id in agents:
                duplicates.append(session_id)
            elif state.agent_id:
                agents[state.agent_id] = state
        self._states = states
        collected = frozenset(archives.keys() - present)
        return RootSnapshot(
            files, user, sessions, agents, tuple(duplicates), collected, contradicted
        )

    def _with_removed(self, files: Mapping[str, bytes], now_ns: int) -> Mapping[str, bytes]:
        """Return the files, with the segments of the log of USER that were removed in time."""
        here = {
            number: content
            for path, content in files.items()
            if (number := _user_segment(path)) is not None
        }
        removed = removed_in_time(here, self._user_segments, now_ns)
        self._user_segments.update(here)
        if not removed:
            return files
        return {**files, **{_user_path(number): content for number, content in removed.items()}}

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


def _joined(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files, with the segments of each log in its first one."""
    segments = [(*segment, path) for path in files if (segment := _segment_in(path))]
    if not segments:
        return files
    joined = dict(files)
    for log, _, path in sorted(segments):
        joined[log] = joined.get(log, b"") + files[path]
    return joined


def _with_archives(
    logs: Mapping[str, bytes], archives: Mapping[str, str]
) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
    """Return the logs, each with its archive as one; and the sessions where the two differ.

    ``archives`` are the paths by session. Either may be a part of the other: a crash interrupts
    the copy, or the removal.
    """
    if not archives:
        return logs, ()
    joined, contradicted = dict(logs), list[str]()
    for session_id, path in sorted(archives.items()):
        kept, archive = logs.get(log_path(session_id), b""), logs[path]
        if archive.startswith(kept):
            joined[log_path(session_id)] = archive
        elif not kept.startswith(archive):
            contradicted.append(session_id)
    return joined, tuple(contradicted)


def _archived_record(session_id: str) -> Mapping[str, Any]:
    """Return the record of a collected session."""
    return {"session_id": session_id, "state": "TERMINATED"}


def _read(path: str, raw: bytes, before: SessionState | None) -> SessionState:
    """Return the state of a log; ``before`` is the state of an earlier snapshot of it."""
    if before is None:
        return SessionState(path, read_log(raw))
    log = read_log(raw, before.log)
    return before.extended(log) if raw.startswith(before.log.raw) else SessionState(path, log)
