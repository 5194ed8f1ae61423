"""Everything that a root holds on disk, as plain data: one look.

Paths are relative to the root. A look never raises for what it finds: the laws judge it.
A reader keeps what it has read, so that the next look at grown logs costs little; looks
that were taken stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import Any, Final, NamedTuple

from oracles.runtime.fold import Fold
from oracles.runtime.line import read_log, unsealed

USER_LOG: Final = "user/events.jsonl"
_SESSION_PATH: Final = re.compile(r"agents/([^/]+)/(.*)")
_READ: Final = re.compile(
    r"(?:root\.json|runtime\.lock"
    r"|(?:user|agents/[0-9a-f]{32})/events\.(?:jsonl|pending)"
    r"|agents/[0-9a-f]{32}/session\.json)(?P<aside>\.quarantine\.[1-9][0-9]*)?"
)
_DIRECTORY: Final = re.compile(r"(?:user|agents|agents/[0-9a-f]{32})/")
_KEPT_FOLDS: Final = 16


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
    fold: Fold
    record: Mapping[str, Any]
    record_reason: str


class Seen(NamedTuple):
    """One look at a root. ``sessions`` is by session id, sorted; ``agents`` by agent id.

    ``twins`` are sessions that claim an agent id that another one has.
    """

    files: Mapping[str, bytes]
    user: Fold
    sessions: Mapping[str, Session]
    agents: Mapping[str, Fold]
    twins: tuple[str, ...]

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> Seen:
        """Read files by a reader of their own."""
        return Reader().look(files)

    def fold_of(self, owner: str) -> Fold | None:
        """Return the fold of an agent id, or of USER."""
        return self.user if owner == "USER" else self.agents.get(owner)

    @property
    def active_reminders(self) -> frozenset[str]:
        """The reminders of living agents that have not come, and were not cancelled."""
        return frozenset(
            key
            for fold in self.agents.values()
            if not fold.ended
            for key in fold.reminders
            if key not in fold.enqueued and key not in fold.cancelled
        )

    def session_of(self, agent_id: str) -> str:
        """Return an agent's session id, or an empty text."""
        fold = self.agents.get(agent_id)
        return fold.session_id if fold else ""


class Reader:
    """Reads looks at one root, one after another.

    What it keeps of the last looks is for disks that are nearly the same, and take turns.
    """

    __slots__ = ("_folds", "_kept", "_records")

    def __init__(self) -> None:
        self._folds: dict[str, Fold] = {}
        self._kept: dict[tuple[str, bytes], Fold] = {}
        self._records: dict[bytes, dict[str, Any] | str] = {}

    def look(self, files: Mapping[str, bytes]) -> Seen:
        """Return what these files say; a path that ends with a slash is an empty directory."""
        ids = set(map(_session_in, files))
        ids.discard("")
        user = self._fold(USER_LOG, files)
        folds = {USER_LOG: user}
        sessions: dict[str, Session] = {}
        agents: dict[str, Fold] = {}
        twins: list[str] = []
        for session_id in sorted(ids):
            path = log_path(session_id)
            folds[path] = fold = self._fold(path, files)
            sessions[session_id] = self._session(session_id, fold, files)
            if fold.agent_id in agents:
                twins.append(session_id)
            elif fold.agent_id:
                agents[fold.agent_id] = fold
        self._folds = folds
        return Seen(files, user, sessions, agents, tuple(twins))

    def _session(self, session_id: str, fold: Fold, files: Mapping[str, bytes]) -> Session:
        raw = files.get(f"agents/{session_id}/session.json")
        if raw is None:
            return Session(session_id, fold, {}, "it is missing")
        record = self._record(raw)
        if isinstance(record, str):
            return Session(session_id, fold, {}, record)
        return Session(session_id, fold, record, "")

    def _fold(self, path: str, files: Mapping[str, bytes]) -> Fold:
        raw = files.get(path, b"")
        before = self._folds.get(path)
        if before is not None and before.log.raw == raw:
            return before
        fold = self._kept.get((path, raw)) or _read(path, raw, before)
        if fold.violation is None:
            if len(self._kept) >= _KEPT_FOLDS:
                self._kept.clear()
            self._kept[path, raw] = fold
        return fold

    def _record(self, raw: bytes) -> dict[str, Any] | str:
        record = self._records.get(raw)
        if record is None:
            if len(self._records) > 64:
                self._records.clear()
            record = self._records[raw] = unsealed(raw.removesuffix(b"\n"))
        return record


def _read(path: str, raw: bytes, before: Fold | None) -> Fold:
    """Return the fold of a log; ``before`` is that of an earlier look at it."""
    if before is None:
        return Fold(path, read_log(raw))
    log = read_log(raw, before.log)
    return before.extended(log) if raw.startswith(before.log.raw) else Fold(path, log)
