"""The laws of the recovery report: it counts exactly what the recovery of a root has done.

They compare the report with the snapshots before and after the recovery, and apply when no
fault was in force: then only crashes explain a difference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from oracles.runtime.log_reader import ParsedLog
from oracles.runtime.log_records import MessageRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.violation import InvalidState, TornRecord

_LATER: Final = ("system", "activity")
"""The kinds of messages that a recovery writes after it has dispatched the outboxes."""
_TEMPORARY: Final = re.compile(r".+\.tmp\.[0-9a-f]{8}")


class ReportLike(Protocol):
    """The counts of a report that are judged; all lists are of paths or ids."""

    @property
    def epoch(self) -> int: ...
    @property
    def sessions(self) -> int: ...
    @property
    def living(self) -> int: ...
    @property
    def lines(self) -> int: ...
    @property
    def torn_bytes(self) -> int: ...
    @property
    def redone(self) -> int: ...
    @property
    def undispatched(self) -> int: ...
    @property
    def damaged(self) -> Sequence[object]: ...
    @property
    def orphans(self) -> Sequence[str]: ...
    @property
    def swept(self) -> Sequence[str]: ...
    @property
    def suspended(self) -> Sequence[str]: ...
    @property
    def ended(self) -> Sequence[str]: ...
    @property
    def lost_turns(self) -> Mapping[str, tuple[str, ...]]: ...


class ShadowEpoch:
    """The boot epoch: every boot has a new one, and no crash restores an earlier one."""

    __slots__ = ("_boots", "_last")

    def __init__(self) -> None:
        self._last = 0
        self._boots = 0

    def boot(self) -> None:
        """Record that a boot begins; it may crash before it has an epoch."""
        self._boots += 1

    def check(self, epoch: int) -> None:
        """Compare the epoch of a complete recovery with those of the boots before it."""
        if not self._last < epoch <= self._last + self._boots:
            raise InvalidState(
                "the boot epoch is not a new one", epoch=epoch, before=self._last,
                boots=self._boots,
            )  # fmt: skip
        self._last, self._boots = epoch, 0


def check_report(report: ReportLike, found: RootSnapshot, recovered: RootSnapshot) -> None:
    """Compare a report with the snapshots before and after the recovery."""
    agents, sessions = recovered.agents, recovered.sessions.keys() | found.sessions.keys()
    living = [state for state in agents.values() if not state.ended]
    _require("sessions", len(agents) - len(recovered.collected), report.sessions)
    _require("living", len(living), report.living)
    _require("undispatched", 0, report.undispatched)
    _require_all("swept", _temporaries(found), report.swept)
    removed = found.sessions.keys() - recovered.sessions.keys()
    # An empty directory is not a session yet, and may be removed as well.
    _require_all("orphans", removed | (set(report.orphans) - sessions), report.orphans)
    _require_all("suspended", _active(found, recovered), report.suspended)
    unchanged = _unchanged(found, recovered)
    for state in unchanged:
        lost = _lost_turns(_before(found, state), state)
        _require("lost_turns", lost, report.lost_turns.get(state.agent_id, ()))
        finished = state.ended == "completed" and not _before(found, state).finished
        _require("ended", finished, state.agent_id in report.ended)
    if not report.redone:
        _require("redone", [], _redone(found, unchanged))
    cut = sum(_cut(found, state) for state in recovered.judged_logs)
    if cut > report.torn_bytes and not report.damaged:
        _require("torn_bytes", cut, report.torn_bytes)
    lines = sum(
        len(state.log.lines) - _before(found, state).segment_seq + 1
        for state in recovered.kept_logs
    )
    if report.lines > lines and not report.orphans:
        _require("lines", lines, report.lines)
    _check_notices(found, unchanged)


def check_second_report(report: ReportLike, recovered: RootSnapshot) -> None:
    """Require that a second recovery in a row has found nothing to do."""
    lines = sum(len(state.log.lines) - state.segment_seq + 1 for state in recovered.kept_logs)
    _require("lines", lines, report.lines)
    _require("torn_bytes", 0, report.torn_bytes)
    _require("redone", 0, report.redone)


def _require(member: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise InvalidState(
            f"the recovery report is wrong: {member}", expected=expected, actual=actual
        )


def _require_all(member: str, expected: Collection[str], actual: Sequence[str]) -> None:
    _require(member, sorted(expected), sorted(set(actual)))


def _temporaries(found: RootSnapshot) -> set[str]:
    return {path for path in found.files if _TEMPORARY.fullmatch(path)}


def _active(found: RootSnapshot, recovered: RootSnapshot) -> set[str]:
    return {
        session_id
        for session_id, session in found.sessions.items()
        if session.record.get("state") == "ACTIVE"
        and session_id in recovered.sessions
        and recovered.sessions[session_id].record.get("state") == "SUSPENDED"
    }


def _lost_turns(before: SessionState, state: SessionState) -> tuple[str, ...]:
    """Return the interrupted turns of an agent that no earlier recovery has reported."""
    notices = before.recovery_notices.values()
    known = {turn_id for notice in notices for turn_id in notice.payload["lost_turns"]}
    return () if state.ended else tuple(key for key in state.open_starts if key not in known)


def _redone(found: RootSnapshot, unchanged: Sequence[SessionState]) -> list[str]:
    """Return the messages, without recovery notices, and the controls that are new."""
    new: list[str] = []
    for state in unchanged:
        before = _before(found, state)
        keys = {key for key, message in state.enqueued.items() if message.kind not in _LATER}
        keys |= set(state.applied_controls)
        new += sorted(keys - before.enqueued.keys() - before.applied_controls.keys())
    return new


def _unchanged(found: RootSnapshot, recovered: RootSnapshot) -> list[SessionState]:
    """Return the logs to which only redone outbox entries and recovery notices were appended.

    A recovery also appends the rest of a pending entry, and the line end of a complete line.
    """
    return [
        state
        for state in recovered.judged_logs
        if not _before(found, state).log.reason
        and state.path.replace(".jsonl", ".pending") not in found.files
    ]


def _before(found: RootSnapshot, state: SessionState) -> SessionState:
    if state.is_user:
        return found.user
    session = found.sessions.get(state.session_id)
    return session.state if session is not None else SessionState(state.path, ParsedLog())


def _cut(found: RootSnapshot, state: SessionState) -> int:
    """Return the number of bytes at the end of a log that its recovery has removed, at least."""
    before, kept = found.raw_log(state.path) or b"", 0
    for line in state.log.lines:
        if not before.startswith(line.raw, kept):
            break
        kept += len(line.raw) + 1
    is_kept = state.log.raw.startswith(before)
    return 0 if is_kept else max(0, len(before) - kept)


def _check_notices(found: RootSnapshot, unchanged: Sequence[SessionState]) -> None:
    """Require that each new notice gives the messages pending before it, and the downtime."""
    for state in unchanged:
        before = _before(found, state)
        for key, message in state.recovery_notices.items():
            if key not in before.enqueued:
                place = state.positions[key]
                pending = sum(state.positions[each] < place for each in state.pending)
                _require("pending, in a notice", pending, message.payload["pending"])
                downtime_ns = _downtime_ns(before.log.lines[-1].ts, message)
                _require("downtime_ns, in a notice", downtime_ns, message.payload["downtime_ns"])


def _downtime_ns(last_ts: str, notice: MessageRecord) -> int:
    """Return the time from ``last_ts`` to a notice, in nanoseconds; 0 if it is negative."""
    try:
        passed = datetime.fromisoformat(notice.timestamp) - datetime.fromisoformat(last_ts)
    except (TypeError, ValueError):
        raise TornRecord("a recovery notice has no time", message=notice) from None
    return max(0, passed // timedelta(microseconds=1)) * 1000
