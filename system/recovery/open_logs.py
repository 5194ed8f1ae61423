"""Pass 3: open every log; cut torn ends, quarantine damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from system.agents.message import USER_SESSION
from system.errors import LogMissing, NewerFormat, StorageError
from system.recording.wal.recovery import make_log_durable, put_bad_bytes_aside, read_log
from system.recovery.root_recovery import RootRecovery
from system.sessions.session_problem import Problem
from system.storage.event_log import EventLog
from system.together import together

SESSIONS_A_CALL: Final = 8
"""The number of logs that one worker settles; with many sessions, several workers share them."""

_Examined: TypeAlias = "tuple[str, Callable[[], EventLog]]"


async def open_logs(recovery: RootRecovery) -> None:
    """Open the log of USER and those of all sessions that have one.

    Raises as ``EventLog.open`` for the log of USER, and as ``read_log`` for that of the
    recording; a session whose log cannot be opened is reported.
    """
    orchestrator, workers = recovery.orchestrator, recovery.host.workers
    if recovery.is_recording:
        await workers.run(lambda: _read_recording(recovery))
    # The first boot makes it durable before there can be an agent.
    recovery.logs[USER_SESSION] = EventLog.open(
        recovery.host, orchestrator.log_path(USER_SESSION), USER_SESSION, orchestrator.framing,
        may_be_new=not recovery.sessions,
    )  # fmt: skip
    if len(recovery.sessions) <= SESSIONS_A_CALL:
        await workers.run(lambda: _settle(recovery, _examine(recovery)))
        return
    # Examining needs a processor, settling waits for the disk.
    examined = await workers.run(lambda: _examine(recovery))
    await together(
        _settle_beside(recovery, examined[start : start + SESSIONS_A_CALL])
        for start in range(0, len(examined), SESSIONS_A_CALL)
    )


def _read_recording(recovery: RootRecovery) -> None:
    host = recovery.host
    recovery.recording_log = log = read_log(host.files, host.clock)
    put_bad_bytes_aside(host.files, host.ids, log)
    make_log_durable(host.files, log)
    recovery.report.recording = log.report


def _examine(recovery: RootRecovery) -> list[_Examined]:
    examined = []
    orchestrator = recovery.orchestrator
    for session_id, names in recovery.sessions.items():
        path = orchestrator.log_path(session_id)
        try:
            settle = EventLog.read(
                recovery.host, path, session_id, orchestrator.framing, names, may_be_new=False
            )
        except LogMissing:
            continue
        except (StorageError, OSError) as error:
            _report(recovery, session_id, error)
        else:
            examined.append((session_id, settle))
    return examined


async def _settle_beside(recovery: RootRecovery, examined: Sequence[_Examined]) -> None:
    await recovery.host.workers.run(lambda: _settle(recovery, examined))


def _settle(recovery: RootRecovery, examined: Sequence[_Examined]) -> None:
    for session_id, settle in examined:
        try:
            recovery.logs[session_id] = settle()
        except (StorageError, OSError) as error:
            _report(recovery, session_id, error)


def _report(recovery: RootRecovery, session_id: str, error: StorageError | OSError) -> None:
    if isinstance(error, NewerFormat):
        recovery.report_problem(session_id, Problem.LOG_NEWER, error.reason)
    else:
        recovery.report_problem(session_id, Problem.FAILED, str(error))
