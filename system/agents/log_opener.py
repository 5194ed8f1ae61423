"""Opening the logs of a root: all of them, whatever state one of them is in."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from system.errors import NewerFormat, StorageError
from system.ports import Host
from system.sessions.store_report import Problem, SessionProblem
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.path import name_of

SESSIONS_A_CALL: Final = 8
"""Logs that one worker settles in a row; with many sessions, several do it side by side."""

_Read: TypeAlias = "tuple[str, Callable[[], EventLog]]"


class LogOpener:
    """Opens logs; ``path_of`` says where that of a session is.

    ``problems`` are sessions that could not be opened.
    """

    def __init__(self, host: Host, path_of: Callable[[str], str], framing: Framing) -> None:
        self.problems: list[SessionProblem] = []
        self._host = host
        self._path_of = path_of
        self._framing = framing
        self._logs: dict[str, EventLog] = {}

    def open(self, session_id: str) -> EventLog:
        """Open one log; raises as ``EventLog.open``."""
        return EventLog.open(self._host, self._path_of(session_id), session_id, self._framing)

    async def open_all(self, sessions: Mapping[str, Sequence[str]]) -> dict[str, EventLog]:
        """Open the logs of those sessions that have one; return them by session.

        ``sessions`` are the names in the directory of each.
        """
        workers = self._host.workers
        if len(sessions) <= SESSIONS_A_CALL:
            await workers.run(lambda: self._settle_each(self._read_each(sessions)))
            return self._logs
        read = await workers.run(lambda: self._read_each(sessions))
        await gather(
            *(
                self._settle_some(read[start : start + SESSIONS_A_CALL])
                for start in range(0, len(read), SESSIONS_A_CALL)
            )
        )
        return self._logs

    def _read_each(self, sessions: Mapping[str, Sequence[str]]) -> list[_Read]:
        """Read the logs in one go: threads that compute get in each other's way."""
        read = []
        for session_id, names in sessions.items():
            path = self._path_of(session_id)
            if name_of(path) not in names:
                continue
            try:
                log = EventLog.read(self._host, path, session_id, self._framing, names)
            except (StorageError, OSError) as error:
                self._tell(session_id, error)
            else:
                read.append((session_id, log))
        return read

    async def _settle_some(self, read: Sequence[_Read]) -> None:
        await self._host.workers.run(lambda: self._settle_each(read))

    def _settle_each(self, read: Sequence[_Read]) -> None:
        for session_id, settle in read:
            try:
                self._logs[session_id] = settle()
            except (StorageError, OSError) as error:
                self._tell(session_id, error)

    def _tell(self, session_id: str, error: StorageError | OSError) -> None:
        """Tell what keeps a session from being served."""
        if isinstance(error, NewerFormat):
            problem = SessionProblem(session_id, Problem.LOG_NEWER, error.reason)
        else:
            problem = SessionProblem(session_id, Problem.FAILED, str(error))
        self.problems.append(problem)
