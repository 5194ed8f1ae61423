"""Pass 2: remove temporary files, and the empty directories of sessions."""

from __future__ import annotations

from collections.abc import Sequence

from system.durable.ended import Ended, ended_session
from system.durable.errors import RowDamaged
from system.durable.state import Transaction
from system.recording.wal.recovery import sweep_recording
from system.recovery.root_recovery import RootRecovery
from system.sessions.session_problem import Problem


def sweep_sessions(recovery: RootRecovery) -> None:
    """Sweep all sessions; sessions whose sweep the disk refuses are reported and unavailable."""
    sweep = recovery.store.sweep()
    recovery.sessions = sweep.sessions
    recovery.report.swept += sweep.swept
    recovery.report.orphans += sweep.removed
    recovery.report.problems += sweep.problems
    _remove_collected(recovery, sweep.removed)
    if recovery.is_recording:
        recovery.report.swept += sweep_recording(recovery.host.files)


def _remove_collected(recovery: RootRecovery, emptied: Sequence[str]) -> None:
    """Remove the directories of collected sessions, which have a row in the table ``ended``.

    The directories of ``emptied`` sessions were removed already; they do not count as orphans.
    Directories that the disk refuses to read or remove are reported, and the next boot tries again.
    A session whose row is damaged is reported and left, because the row is not used.
    """
    state = recovery.orchestrator.state
    if state is None:
        return
    problems = recovery.report.problems
    ids = [*recovery.sessions, *emptied, *(problem.session_id for problem in problems)]
    rows = state.transact(lambda each: [_ended(each, session_id) for session_id in ids])
    found = dict(zip(ids, rows, strict=True))
    collected = [session_id for session_id, row in found.items() if isinstance(row, Ended)]
    for session_id, row in found.items():
        if isinstance(row, RowDamaged):
            _leave(recovery, session_id, row)
    recovery.collected.update(collected)
    if garbage := [session_id for session_id in collected if session_id in recovery.sessions]:
        problems += recovery.store.remove_all(garbage)
    refused = {problem.session_id for problem in problems}
    recovery.report.collected += len(recovery.collected - refused)
    for session_id in garbage:
        del recovery.sessions[session_id]
    orphans = recovery.report.orphans
    recovery.report.orphans = [each for each in orphans if found[each] is None]


def _ended(transaction: Transaction, session_id: str) -> Ended | RowDamaged | None:
    try:
        return ended_session(transaction, session_id)
    except RowDamaged as damaged:
        return damaged


def _leave(recovery: RootRecovery, session_id: str, damaged: RowDamaged) -> None:
    """Report a damaged row; if its session has a directory, leave that unchanged and unread."""
    if recovery.sessions.pop(session_id, None) is None:
        recovery.orchestrator.damaged_rows.add(str(damaged))
    else:
        recovery.report_problem(session_id, Problem.FAILED, str(damaged))
