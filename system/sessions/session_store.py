"""The session records of one root, each in ``agents/<session id>/session.json``.

A record is replaced atomically and durably at each change of state. A damaged record is
quarantined and reported, and does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from system.errors import (
    NewerFormat,
    RaisingStorageFull,
    SessionNotFound,
    SessionRecordDamaged,
    StorageFull,
)
from system.ports import Host
from system.sessions.session import SessionRecord, decode_record, encode_record
from system.sessions.session_problem import Problem, SessionProblem
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.durable_directory import make_durable_directory
from system.storage.quarantine import move_aside

_SESSION_ID: Final = re.compile("[0-9a-f]{32}")


class Sweep(NamedTuple):
    """The result of ``SessionStore.sweep``.

    ``sessions`` has the file names in the directory of each session. ``swept`` are the paths of
    the temporary files that were removed. ``removed`` are the session ids whose directories were
    empty and were removed: their creation did not happen. ``problems`` are sessions whose sweep
    the disk refused.
    """

    sessions: dict[str, list[str]]
    swept: list[str]
    removed: list[str]
    problems: list[SessionProblem]


class SessionStore:
    """Reads, writes and removes the session records of the host's root."""

    def __init__(self, host: Host) -> None:
        self._files = host.files
        self._ids = host.ids
        self.directory = "agents"

    def directory_of(self, session_id: str) -> str:
        """Return the directory of a session; its log is in it, too."""
        return f"{self.directory}/{session_id}"

    def path_of(self, session_id: str) -> str:
        """Return the path of a session's record."""
        return f"{self.directory}/{session_id}/session.json"

    def add(self, record: SessionRecord) -> None:
        """Write a session's first record, durably, with its directory.

        Files of an earlier attempt are replaced. Raises ``NotPlainJson``, ``StorageFull`` or
        ``OSError``.
        """
        encoded = encode_record(record)
        directory = self.directory_of(record.session_id)
        with RaisingStorageFull(directory):
            make_durable_directory(self._files, self.directory)
            if self._files.kind(directory) is None:
                self._files.mkdir(directory)
            try:
                self._files.sync_dir(self.directory)
                self._write(record.session_id, encoded)
            except (StorageFull, OSError):
                self._remove_if_empty(directory)
                raise

    def replace(self, record: SessionRecord) -> None:
        """Write or replace a session's record; durable when this returns.

        Raises ``StorageFull`` or ``OSError`` as ``write_atomic`` does.
        """
        self._write(record.session_id, encode_record(record))

    def _write(self, session_id: str, encoded: bytes) -> None:
        write_atomic(self._files, self.path_of(session_id), encoded, self._ids)

    def load(self, session_id: str) -> SessionRecord:
        """Return the record of a session.

        Raises ``SessionNotFound``, ``SessionRecordDamaged``, ``NewerFormat`` or ``OSError``.
        """
        path = self.path_of(session_id)
        try:
            encoded = read_whole(self._files, path)
        except FileNotFoundError:
            raise SessionNotFound(path, "there is no record of this session") from None
        return decode_record(encoded, session_id, path)

    def examine(self, session_id: str) -> SessionRecord | SessionProblem:
        """Return a session's record, or the problem with it; quarantine a damaged one."""
        try:
            return self.load(session_id)
        except SessionNotFound as error:
            return SessionProblem(session_id, Problem.NO_RECORD, error.reason)
        except NewerFormat as error:
            return SessionProblem(session_id, Problem.NEWER, error.reason)
        except SessionRecordDamaged as error:
            return self._put_aside(session_id, error)
        except OSError as error:
            return SessionProblem(session_id, Problem.FAILED, str(error))

    def session_ids(self) -> list[str]:
        """Return the names in the directory of sessions that are ids; raises ``OSError``."""
        try:
            names = self._files.listdir(self.directory)
        except FileNotFoundError:
            return []
        return [name for name in names if _SESSION_ID.fullmatch(name)]

    def sweep(self) -> Sweep:
        """Make the names of the sessions durable, remove temporary files and empty directories.

        The name of the directory of all sessions is durable, because ``Root.open`` has synced the
        root; the entries of a session's own directory become durable by a barrier on it, which the
        caller issues. Raises ``OSError`` if the directory of all sessions cannot be read.
        """
        result = Sweep({}, [], [], [])
        session_ids = self.session_ids()
        if session_ids:
            # A killed process may have created a name without a sync.
            self._files.sync_dir(self.directory)
        for session_id in session_ids:
            if names := self._swept(session_id, result):
                result.sessions[session_id] = names
        return result

    def remove(self, session_id: str) -> None:
        """Remove all files of a session, durably; raises ``OSError``."""
        self._remove_files(session_id)
        self._files.sync_dir(self.directory)

    def remove_all(self, session_ids: Sequence[str]) -> list[SessionProblem]:
        """Remove all files of sessions with one barrier; return those that the disk refuses.

        Raises ``OSError`` if the barrier fails.
        """
        refused = []
        for session_id in session_ids:
            try:
                self._remove_files(session_id)
            except OSError as error:
                detail = f"it was collected, and cannot be removed ({error})"
                refused.append(SessionProblem(session_id, Problem.FAILED, detail))
        self._files.sync_dir(self.directory)
        return refused

    def _remove_files(self, session_id: str) -> None:
        directory = self.directory_of(session_id)
        for name in self._files.listdir(directory):
            self._files.unlink(f"{directory}/{name}")
        self._files.rmdir(directory)

    def _swept(self, session_id: str, result: Sweep) -> list[str]:
        """Sweep one directory; return the names that stay, none if it is not a session."""
        directory = self.directory_of(session_id)
        try:
            names = self._files.listdir(directory)
            swept = sweep_temporaries(self._files, directory, names=names)
            result.swept.extend(swept)
            if len(names) == len(swept):
                self._files.rmdir(directory)
                result.removed.append(session_id)
        except NotADirectoryError:
            return []
        except (StorageFull, OSError) as error:
            result.problems.append(SessionProblem(session_id, Problem.FAILED, str(error)))
            return []
        if not swept:
            return names
        return [name for name in names if f"{directory}/{name}" not in swept]

    def _put_aside(self, session_id: str, damaged: SessionRecordDamaged) -> SessionProblem:
        try:
            aside = move_aside(self._files, damaged.path)
        except OSError as error:
            reason = f"{damaged.reason}; it could not be put aside ({error})"
            return SessionProblem(session_id, Problem.FAILED, reason)
        return SessionProblem(session_id, Problem.DAMAGED, damaged.reason, aside)

    def _remove_if_empty(self, directory: str) -> None:
        """Remove the directory of a failed creation; if that fails, recovery does it."""
        try:
            self._files.rmdir(directory)
        except OSError:
            return
