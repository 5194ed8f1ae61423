"""What a recovery has found and done: everything that is not there any more is told here."""

from __future__ import annotations

from dataclasses import dataclass, field

from system.sessions.store_report import SessionProblem
from system.storage.log_report import Damage


@dataclass(slots=True)
class RecoveryReport:
    """``epoch`` counts the boots of this root.

    ``sessions``, ``living`` and ``lines`` are counts; ``unknown_lines`` are those of events
    that this version does not know. ``torn_bytes`` were cut off the ends of logs: lines
    that nobody was told of. ``damaged`` are bytes put aside; ``missing`` are
    first and last numbers of lines that are gone, by session. ``problems`` are sessions
    that are not served, or whose record had to be written anew. ``detached`` are sessions
    whose parent cannot be found; they count as roots. ``vanished`` are agents that have said
    something to others and of which no session is left. ``orphans`` are sessions that never
    became agents and were removed. ``swept`` are temporary files. ``suspended`` are
    sessions that the last lifetime had open. ``ended`` are agents whose end was
    finished, ``redone`` counts lines that other logs were owed, and ``unkept`` those of
    them that the disk has refused so far. ``lost_turns`` are turns
    that were under way, by agent. ``leaks`` are conversations that a provider keeps and no
    session knows, each as ``provider: identity``.
    """

    epoch: int = 0
    sessions: int = 0
    living: int = 0
    lines: int = 0
    unknown_lines: int = 0
    torn_bytes: int = 0
    redone: int = 0
    unkept: int = 0
    damaged: list[Damage] = field(default_factory=list)
    missing: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    problems: list[SessionProblem] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    lost_turns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
