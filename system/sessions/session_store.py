"""The session records of one root, each in ``agents/<session id>/session.json``.

Rows S-20…S-24, Y7. A record is replaced at once and durably at each transition. One bad
record never stops the others (hole R8): it is put aside and reported.
"""

from __future__ import annotations

import re
from errno import EEXIST
from posixpath import join
from typing import Final

from system.errors import (
    NewerFormat,
    RecordDamaged,
    SessionNotFound,
    StorageFull,
    raising_storage_full,
)
from system.ports import FileKind, Host
from system.sessions.session import SessionRecord, SessionState, decode_record, encode_record
from system.sessions.store_report import Problem, ReportBuilder, SessionProblem, StoreReport
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.durable_directory import make_durable_directory
from system.storage.quarantine import move_aside

_SESSION_ID: Final = re.compile("[0-9a-f]{32}")


class SessionStore:
    """Creates, saves, loads and recovers session records below ``root``."""

    def __init__(self, host: Host, root: str = "") -> None:
        self._files = host.files
        self._ids = host.ids
        self.directory = join(root, "agents")

    def directory_of(self, session_id: str) -> str:
        """Return the directory of a session, where its log stands as well."""
        return f"{self.directory}/{session_id}"

    def path_of(self, session_id: str) -> str:
        """Return the path of a session's record."""
        return f"{self.directory}/{session_id}/session.json"

    def create(
        self, provider_name: str, model: str, provider_state_blob: bytes = b""
    ) -> SessionRecord:
        """Create a session, ACTIVE; it is durable, with its directory, when this returns.

        Raises ``NotPlainJson``, ``StorageFull`` or ``OSError``.
        """
        session_id = self._ids.uuid_hex()
        record = SessionRecord(
            session_id, provider_name, model, SessionState.ACTIVE, provider_state_blob
        )
        directory = self.directory_of(session_id)
        if self._files.kind(directory) is not None:
            raise FileExistsError(EEXIST, "a session of this id is there already", directory)
        self.add(record)
        return record

    def add(self, record: SessionRecord) -> None:
        """Write a session's first record, durably, with its directory.

        What an earlier attempt has left there is taken over. Raises as ``create``.
        """
        encoded = encode_record(record)
        directory = self.directory_of(record.session_id)
        with raising_storage_full(directory):
            make_durable_directory(self._files, self.directory)
            if self._files.kind(directory) is None:
                self._files.mkdir(directory)
            try:
                self._files.sync_dir(self.directory)
                write_atomic(self._files, self.path_of(record.session_id), encoded, self._ids)
            except (StorageFull, OSError):
                self._remove_if_empty(directory)
                raise

    def replace(self, record: SessionRecord) -> None:
        """Write a record over the one that is there; for who knows that it may follow.

        Raises ``StorageFull`` or ``OSError`` as ``write_atomic`` does.
        """
        write_atomic(self._files, self.path_of(record.session_id), encode_record(record), self._ids)

    def save(self, record: SessionRecord) -> None:
        """Replace the record of a session by its next one, durably when this returns.

        Raises ``IllegalTransition`` and what ``load`` raises, with nothing changed;
        ``StorageFull`` or ``OSError`` as ``write_atomic`` does.
        """
        record.check_follows(self.load(record.session_id), self.path_of(record.session_id))
        self.replace(record)

    def load(self, session_id: str) -> SessionRecord:
        """Return the record of a session.

        Raises ``SessionNotFound``, ``RecordDamaged``, ``NewerFormat`` or ``OSError``.
        """
        path = self.path_of(session_id)
        try:
            encoded = read_whole(self._files, path)
        except FileNotFoundError:
            raise SessionNotFound(path, "there is no record of this session") from None
        return decode_record(encoded, session_id, path)

    def scan(self) -> StoreReport:
        """Load all sessions; a damaged record is put aside and reported.

        Raises ``OSError`` only when the directory of all sessions cannot be read.
        """
        report = ReportBuilder()
        for session_id in self._session_ids():
            report.add(self.examine(session_id))
        return report.finish()

    def recover(self) -> StoreReport:
        """Scan, and bring the sessions to order after a crash: ACTIVE becomes SUSPENDED.

        Everything in the report is durable; what a killed process wrote last need not be
        until now. Removes temporary files, and the directories of creations that never
        happened. It may run any number of times before the first session is taken up.
        """
        report = ReportBuilder()
        for session_id in self.tidy(report):
            try:
                self._files.sync_dir(self.directory_of(session_id))
            except OSError as error:
                report.add(SessionProblem(session_id, Problem.FAILED, str(error)))
                continue
            found = self.examine(session_id)
            if isinstance(found, SessionRecord) and found.state is SessionState.ACTIVE:
                found = self._suspended(found, report)
            report.add(found)
        return report.finish()

    def tidy(self, report: ReportBuilder) -> dict[str, list[str]]:
        """Make the directories durable, sweep temporary files, remove empty directories.

        What is in the directory of a session becomes durable by a barrier on that directory,
        which the caller sees to. Returns the sessions that are left and could be tidied, and
        the names that are left in the directory of each; ``report`` is told the rest.
        """
        session_ids = self._named_like_sessions()
        if session_ids:
            make_durable_directory(self._files, self.directory)
            self._files.sync_dir(self.directory)
        left = {session_id: self._tidied(session_id, report) for session_id in session_ids}
        return {session_id: names for session_id, names in left.items() if names}

    def remove(self, session_id: str) -> None:
        """Remove everything of a session that never came to be, durably; or ``OSError``."""
        directory = self.directory_of(session_id)
        for name in self._files.listdir(directory):
            self._files.unlink(f"{directory}/{name}")
        self._files.rmdir(directory)
        self._files.sync_dir(self.directory)

    def _tidied(self, session_id: str, report: ReportBuilder) -> list[str]:
        """Return the names that stay; none when there is no session, or it could not be tidied."""
        directory = self.directory_of(session_id)
        try:
            names = self._files.listdir(directory)
            swept = sweep_temporaries(self._files, directory, names=names)
            report.swept += swept
            if len(names) == len(swept):
                self._files.rmdir(directory)
                report.removed.append(session_id)
        except NotADirectoryError:
            return []
        except (StorageFull, OSError) as error:
            report.add(SessionProblem(session_id, Problem.FAILED, str(error)))
            return []
        if not swept:
            return names
        return [name for name in names if f"{directory}/{name}" not in swept]

    def _suspended(
        self, record: SessionRecord, report: ReportBuilder
    ) -> SessionRecord | SessionProblem:
        after = record.moved_to(SessionState.SUSPENDED)
        try:
            self.replace(after)
        except (StorageFull, OSError) as error:
            return SessionProblem(record.session_id, Problem.FAILED, str(error))
        report.suspended.append(record.session_id)
        return after

    def _session_ids(self) -> list[str]:
        return [
            name
            for name in self._named_like_sessions()
            if self._files.kind(self.directory_of(name)) is FileKind.DIRECTORY
        ]

    def _named_like_sessions(self) -> list[str]:
        try:
            names = self._files.listdir(self.directory)
        except FileNotFoundError:
            return []
        return [name for name in names if _SESSION_ID.fullmatch(name)]

    def examine(self, session_id: str) -> SessionRecord | SessionProblem:
        """Load one record; a damaged one is put aside. Raises nothing: the problem is told."""
        try:
            return self.load(session_id)
        except SessionNotFound as error:
            return SessionProblem(session_id, Problem.NO_RECORD, error.reason)
        except NewerFormat as error:
            return SessionProblem(session_id, Problem.NEWER, error.reason)
        except RecordDamaged as error:
            return self._put_aside(session_id, error)
        except OSError as error:
            return SessionProblem(session_id, Problem.FAILED, str(error))

    def _put_aside(self, session_id: str, damaged: RecordDamaged) -> SessionProblem:
        try:
            aside = move_aside(self._files, damaged.path)
        except OSError as error:
            reason = f"{damaged.reason}; it could not be put aside ({error})"
            return SessionProblem(session_id, Problem.FAILED, reason)
        return SessionProblem(session_id, Problem.DAMAGED, damaged.reason, aside)

    def _remove_if_empty(self, directory: str) -> None:
        """Take back the directory of a failed creation; if that fails, recovery does it."""
        try:
            self._files.rmdir(directory)
        except OSError:
            return
