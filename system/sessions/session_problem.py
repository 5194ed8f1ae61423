"""Problems of sessions that recovery reports; one problem never stops the other sessions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Problem(Enum):
    """Kinds of problems; the value is the text of the report."""

    DAMAGED = "its record was damaged, and was put aside"
    NEWER = "its record is of a newer format, and was left as it is"
    NO_RECORD = "it has no record"
    LOG_DAMAGED = "too little of its log is left; what there is was kept, and is not served"
    LOG_NEWER = "its log is of a newer format, and was left as it is"
    FAILED = "the disk refused to read or write it; recover again"


@dataclass(frozen=True, slots=True)
class SessionProblem:
    """One problem of one session; ``detail`` is for display.

    ``quarantine`` is the path to which a damaged record was moved, or empty.
    """

    session_id: str
    problem: Problem
    detail: str
    quarantine: str = ""
