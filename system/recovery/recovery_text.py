"""The text of a recovery report: a line of counts, then one line for each finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from system.agents.message import USER_SESSION
from system.errors import NewerFormat
from system.recording.wal.report import WalReport, missing_text
from system.recovery.recovery_report import RecoveryReport
from system.sessions.session_problem import Problem, SessionProblem
from system.storage.log_report import spans_text

_WRITTEN_AGAIN: Final = "it was written again"
_OUTCOMES: Final[Mapping[Problem, str]] = MappingProxyType(
    {
        Problem.NO_RECORD: _WRITTEN_AGAIN,
        Problem.DAMAGED: _WRITTEN_AGAIN,
        Problem.LOG_NEWER: NewerFormat.cure,
    }
)
"""The action of recovery for a problem, or the remedy for the reader."""


def recovery_text(report: RecoveryReport) -> Iterator[str]:
    """Yield the lines; the first begins with ``recovered``, the others are indented."""
    yield (
        f"recovered epoch={report.epoch} sessions={report.sessions} living={report.living} "
        f"lines={report.lines}"
    )
    counted = (
        ("outbox entries that were missing in other logs", report.redone),
        ("of them refused by the disk so far", report.undispatched),
        ("conversations that had been open, suspended", len(report.suspended)),
        ("turns that were under way, to be run again", sum(map(len, report.lost_turns.values()))),
        ("agents whose end was finished", len(report.ended)),
        ("lines of events that this version does not know", report.unknown_lines),
        ("bytes of unfinished lines, cut off", report.torn_bytes),
        ("sessions that never became agents, removed", len(report.orphans)),
        ("temporary files, removed", len(report.swept)),
        ("directories of agents whose end is recorded, removed", report.collected),
        ("turns whose outbox was applied to state.db", report.applied),
        ("triggers whose turns were interrupted", len(report.reclaimed)),
        ("tasks that are resumed", len(report.resumed)),
        ("executions that had not ended", len(report.incomplete)),
        ("bytes of unfinished entries of the recording, cut off", report.recording.torn_bytes),
    )
    for label, count in counted:
        if count:
            yield f"  {label}: {count}"
    for line in (*damage_text(report), *_leaks(report), *report.recording.foreign):
        yield f"  {line}"
    for each in report.incomplete:
        point = each.point
        yield (
            f"  execution {each.execution_id}: interrupted {point.stage}: {point.recovery}"
            f" (action={point.action})"
        )


def damage_text(report: RecoveryReport) -> Iterator[str]:
    """Yield a line for each damage, and each thing that is lost or not served because of one."""
    for damage in (*report.damaged, *report.recording.damaged):
        yield (
            f"{damage.path}: {damage.size_bytes} damaged bytes at offset {damage.offset} "
            f"were put aside in {damage.quarantine}: {damage.reason}"
        )
    yield from _missing(report)
    yield from map(_problem, report.problems)
    for session_id in report.fallbacks:
        yield f"{_log_of(session_id)}: its newest snapshot was damaged; the one before was read"
    for session_id in report.detached:
        yield f"session {session_id}: its parent cannot be found; it counts as a root"
    yield from report.damaged_rows
    for session_id in report.unfed:
        yield f"session {session_id}: work in state.db waits for it, and it is not served"
    yield from _vanished(report)
    yield from _recording(report.recording)


def losses_text(report: RecoveryReport) -> Iterator[str]:
    """Yield the lines about agents that are not served, or have lost lines."""
    for problem in report.problems:
        if _OUTCOMES.get(problem.problem) != _WRITTEN_AGAIN:
            yield _problem(problem)
    yield from _vanished(report)
    yield from _missing(report)


def _missing(report: RecoveryReport) -> Iterator[str]:
    for session_id, gaps in sorted(report.missing.items()):
        yield f"{_log_of(session_id)}: lines are missing: {spans_text(gaps)}"


def _log_of(session_id: str) -> str:
    return "the log of USER" if session_id == USER_SESSION else f"session {session_id}"


def _problem(found: SessionProblem) -> str:
    problem = "it had no record" if found.problem is Problem.NO_RECORD else found.problem.value
    where = f" in {found.quarantine}" if found.quarantine else ""
    outcome = f"; {_OUTCOMES[found.problem]}" if found.problem in _OUTCOMES else ""
    return f"session {found.session_id}: {problem}{where}{outcome} ({found.detail})"


def _vanished(report: RecoveryReport) -> Iterator[str]:
    for agent_id in report.vanished:
        yield f"agent {agent_id}: it has sent messages, and nothing of its session is left"


def _recording(report: WalReport) -> Iterator[str]:
    if report.missing:
        yield missing_text(report.missing)
    for execution_id in report.corrupted:
        yield f"execution {execution_id}: damage has taken a part of its record"
    yield from report.findings


def _leaks(report: RecoveryReport) -> Iterator[str]:
    for leak in report.leaks:
        yield f"a provider keeps a conversation that no session has: {leak}"
