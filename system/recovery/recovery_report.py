"""The report of a recovery: everything that it found, repaired, removed or lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from system.recording.crash_point import IncompleteExecution
from system.recording.wal.report import WalReport
from system.sessions.session_problem import SessionProblem
from system.storage.log_report import Damage


@dataclass(slots=True)
class RecoveryReport:
    """``epoch`` counts the boots of this root.

    ``sessions``, ``living`` and ``lines`` are counts; ``unknown_lines`` counts lines with events
    that this version does not know. ``torn_bytes`` were cut off the ends of logs: lines that
    were never acknowledged. ``damaged`` are quarantined bytes; ``missing`` has the first and
    last numbers of missing lines, by session. ``problems`` are sessions that cannot be used,
    or whose record had to be written again. ``detached`` are sessions whose parent cannot be
    found; they count as roots. ``vanished`` are agents that have sent messages but have no
    session any more. ``orphans`` are sessions that never became agents and were removed.
    ``swept`` are temporary files that were removed. ``fallbacks`` are sessions whose newest
    snapshot was damaged, so that the segment before it was read. ``suspended`` are sessions
    whose record had the state ACTIVE. ``ended`` are agents whose interrupted end was finished.
    ``redone`` counts the outbox entries that were missing in other logs, ``undispatched``
    those of them that the disk has refused so far. ``lost_turns`` are the turns that a crash
    interrupted, by agent. ``leaks`` are conversations that a provider keeps for no known
    session, each as ``provider: identity``. ``recording`` is the report of the write-ahead log
    of executions; ``incomplete`` are executions that had not ended and whose status is
    ``incomplete``. ``collected`` counts the agents whose directories were removed by this boot,
    and since then; ``archived_bytes`` counts the bytes archived since then. ``applied`` counts
    the lines whose outbox ``state.db`` did not have, ``reclaimed`` are triggers whose turns the
    crash had interrupted, ``resumed`` the RESUME triggers. ``damaged_rows`` of ``state.db`` are
    left unchanged; ``unfed`` are sessions that cannot be used and for which work waits in
    ``state.db``.
    """

    epoch: int = 0
    sessions: int = 0
    living: int = 0
    lines: int = 0
    unknown_lines: int = 0
    torn_bytes: int = 0
    redone: int = 0
    undispatched: int = 0
    damaged: list[Damage] = field(default_factory=list)
    missing: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    problems: list[SessionProblem] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    lost_turns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    collected: int = 0
    archived_bytes: int = 0
    applied: int = 0
    reclaimed: list[str] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    damaged_rows: list[str] = field(default_factory=list)
    unfed: list[str] = field(default_factory=list)
    recording: WalReport = field(default_factory=WalReport)
    incomplete: list[IncompleteExecution] = field(default_factory=list)
