"""Pass 4: apply the lines of every log to a history, and read every record."""

from __future__ import annotations

from system.agents.history import History
from system.agents.message import USER_SESSION
from system.agents.orchestrator import USER_LOG
from system.errors import NewerFormat
from system.recovery.root_recovery import RootRecovery
from system.sessions.session import SessionRecord
from system.sessions.session_problem import Problem
from system.storage.event_log import EventLog


def apply_logs(recovery: RootRecovery) -> None:
    """Fill ``histories`` and ``records``; a session without a history is unavailable.

    Raises ``NewerFormat`` if the log of USER has data of another version.
    """
    report = recovery.report
    unread = {problem.session_id for problem in report.problems} - recovery.collected
    for session_id in (USER_SESSION, *recovery.sessions):
        if session_id in unread:
            continue
        log = recovery.logs.get(session_id)
        try:
            history = _history_of(recovery, session_id, log) if log else History()
        except (KeyError, ValueError) as error:
            _refuse(recovery, session_id, f"a line of its log has data that are not ours: {error}")
            unread.add(session_id)
            continue
        recovery.histories[session_id] = history
        recovery.last_ts[session_id] = history.last_ts
        if session_id != USER_SESSION:
            _read_record(recovery, session_id)
    recovery.orchestrator.unserved.update(unread)
    report.problems.sort(key=lambda problem: problem.session_id)


def _history_of(recovery: RootRecovery, session_id: str, log: EventLog) -> History:
    found, report = log.report, recovery.report
    report.lines += found.lines
    report.torn_bytes += found.torn_bytes
    report.damaged += found.damaged
    report.swept += found.swept
    if found.has_fallen_back:
        report.fallbacks.append(session_id)
    if found.missing:
        report.missing[session_id] = found.missing
    history = History.from_lines(log.recovered)
    log.recovered = ()
    report.unknown_lines += history.ignored
    return history


def _refuse(recovery: RootRecovery, session_id: str, reason: str) -> None:
    if session_id == USER_SESSION:
        raise NewerFormat(USER_LOG, reason)
    recovery.report_problem(session_id, Problem.LOG_NEWER, reason)
    recovery.close_log(session_id)


def _read_record(recovery: RootRecovery, session_id: str) -> None:
    found = recovery.store.examine(session_id)
    if isinstance(found, SessionRecord):
        recovery.records[session_id] = found
    else:
        recovery.record_problems[session_id] = found
