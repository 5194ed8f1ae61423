"""What the session store found below its root: every session is told, good or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from system.sessions.session import SessionRecord


class Problem(Enum):
    """What is wrong with a session."""

    DAMAGED = "its record was damaged, and was put aside"
    NEWER = "its record is of a newer format, and was left as it is"
    NO_RECORD = "it has no record"
    LOG_DAMAGED = "too little of its log is left; what there is was kept, and is not served"
    LOG_NEWER = "its log is of a newer format, and was left as it is"
    FAILED = "the disk refused to read or write it; recover again"


@dataclass(frozen=True, slots=True)
class SessionProblem:
    """One session that gave no record; ``detail`` is for people.

    ``quarantine`` is where a damaged record was put, else empty.
    """

    session_id: str
    problem: Problem
    detail: str
    quarantine: str = ""


@dataclass(frozen=True, slots=True)
class StoreReport:
    """All sessions of a root, each either in ``records`` or in ``problems``, sorted by id.

    ``suspended`` are the ids that recovery found ACTIVE. ``swept`` are the paths of the
    temporary files that it removed, ``removed`` the ids whose empty directories it removed:
    creations that never happened.
    """

    records: tuple[SessionRecord, ...]
    problems: tuple[SessionProblem, ...]
    suspended: tuple[str, ...]
    swept: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(slots=True)
class ReportBuilder:
    """A report in the making."""

    records: list[SessionRecord] = field(default_factory=list)
    problems: list[SessionProblem] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def add(self, found: SessionRecord | SessionProblem) -> None:
        """Take in the outcome of one session."""
        if isinstance(found, SessionRecord):
            self.records.append(found)
        else:
            self.problems.append(found)

    def finish(self) -> StoreReport:
        """Return the report."""
        return StoreReport(
            tuple(self.records),
            tuple(self.problems),
            tuple(self.suspended),
            tuple(self.swept),
            tuple(self.removed),
        )
