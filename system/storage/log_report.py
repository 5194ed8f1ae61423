"""The report of a log's recovery: every byte that was removed, and every line that is missing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class PendingVerdict(Enum):
    """What recovery did with the entry of the framing ``pending``."""

    ABSENT = "there was none"
    REPLAYED = "the log did not have all of it; the rest was appended"
    STALE = "the log has all of it already"
    TORN = "it was not whole, so nothing of it was ever appended"
    AHEAD = "lines before it are missing; it was put aside"


class Damage(NamedTuple):
    """Bytes that are no line, moved from the file at ``path`` to the file ``quarantine``.

    ``offset`` and ``size_bytes`` refer to the file before its repair. ``tail`` is true if no
    line follows them: then they may be the remainder of appends that were never
    acknowledged, which the disk alone cannot decide.
    """

    path: str
    offset: int
    size_bytes: int
    reason: str
    tail: bool
    quarantine: str


class LogReport(NamedTuple):
    """The state of a log after it was opened.

    ``lines`` is the number of lines. ``torn_bytes`` were cut off the end: the beginning of a
    line that was never acknowledged. ``missing`` has the first and last sequence number of each
    gap of lines that were written; a gap is reported at every opening. ``swept`` are the
    temporary files that were removed. ``has_fallen_back``: the newest snapshot was damaged, so
    the segment before it was read.
    """

    path: str
    lines: int
    torn_bytes: int = 0
    damaged: tuple[Damage, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    pending: PendingVerdict = PendingVerdict.ABSENT
    swept: tuple[str, ...] = ()
    has_fallen_back: bool = False

    @property
    def lost_nothing(self) -> bool:
        """Whether it is certain that no acknowledged line is missing."""
        return not self.damaged and not self.missing


def spans_text(spans: Iterable[tuple[int, int]]) -> str:
    """Return firsts and lasts as text: ``3, 5 to 8``."""
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in spans)
