"""The session records of one root, each in ``agents/<session id>/session.json``.

Rows S-20…S-24, Y7. A record is replaced at once and durably at each transition. One bad
record never stops the others (hole R8): it is put aside and reported.
"""

from __future__ import annotations

import re
from posixpath import join
from typing import Final

from system.agents.session import SessionRecord, SessionState, decode_record, encode_record
from system.agents.store_report import Problem, ReportBuilder, SessionProblem, StoreReport
from system.errors import (
    NewerFormat,
    RecordDamaged,
    SessionNotFound,
    StorageFull,
    told_when_full,
)
from system.ports import Host, Kind
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
        return join(self.directory, session_id)

    def path_of(self, session_id: str) -> str:
        """Return the path of a session's record."""
        return join(self.directory, session_id, "session.json")

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
        encoded = encode_record(record)
        directory = self.directory_of(session_id)
        with told_when_full(directory):
            make_durable_directory(self._files, self.directory)
            self._files.mkdir(directory)
            try:
                self._files.sync_dir(self.directory)
                write_atomic(self._files, self.path_of(session_id), encoded, self._ids)
            except (StorageFull, OSError):
                self._remove_if_empty(directory)
                raise
        return record

    def save(self, record: SessionRecord) -> None:
        """Replace the record of a session by its next one, durably when this returns.

        Raises ``IllegalTransition`` and what ``load`` raises, with nothing changed;
        ``StorageFull`` or ``OSError`` as ``write_atomic`` does.
        """
        path = self.path_of(record.session_id)
        record.check_follows(self.load(record.session_id), path)
        write_atomic(self._files, path, encode_record(record), self._ids)

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
            report.add(self._examine(session_id))
        return report.finish()

    def recover(self) -> StoreReport:
        """Scan, and bring the sessions to order after a crash: ACTIVE becomes SUSPENDED.

        Everything in the report is durable; what a killed process wrote last need not be
        until now. Removes temporary files, and the directories of creations that never
        happened. It may run any number of times before the first session is taken up.
        """
        report = ReportBuilder()
        session_ids = self._session_ids()
        if session_ids:
            make_durable_directory(self._files, self.directory)
            self._files.sync_dir(self.directory)
        for session_id in session_ids:
            try:
                self._recover(session_id, report)
            except (StorageFull, OSError) as error:
                report.add(SessionProblem(session_id, Problem.FAILED, str(error)))
        return report.finish()

    def _recover(self, session_id: str, report: ReportBuilder) -> None:
        directory = self.directory_of(session_id)
        report.swept += sweep_temporaries(self._files, directory)
        if not self._files.listdir(directory):
            self._files.rmdir(directory)
            report.removed.append(session_id)
            return
        found = self._examine(session_id)
        self._files.sync_dir(directory)
        if isinstance(found, SessionRecord) and found.state is SessionState.ACTIVE:
            found = found.moved_to(SessionState.SUSPENDED)
            write_atomic(self._files, self.path_of(session_id), encode_record(found), self._ids)
            report.suspended.append(session_id)
        report.add(found)

    def _session_ids(self) -> list[str]:
        if self._files.kind(self.directory) is None:
            return []
        return [
            name
            for name in self._files.listdir(self.directory)
            if _SESSION_ID.fullmatch(name)
            and self._files.kind(self.directory_of(name)) is Kind.DIRECTORY
        ]

    def _examine(self, session_id: str) -> SessionRecord | SessionProblem:
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
