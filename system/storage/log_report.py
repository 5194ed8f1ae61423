"""What opening a log has found: everything that is not there any more is told here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class PendingFate(Enum):
    """What recovery did with the pending entry of the framing ``pending``."""

    ABSENT = "there was none"
    REPLAYED = "the log did not have all of it; the rest was appended"
    STALE = "the log had it already, or had moved past it (hole R3)"
    TORN = "it was not whole, so nothing of it was ever appended (hole R1)"
    AHEAD = "lines before it are missing; it was put aside"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no line, taken out of the file at ``path`` and kept at ``quarantine``.

    ``offset`` and ``size_bytes`` are those in the file before it was repaired. ``tail``
    says that no line is kept behind them: they may be all that a power cut left of appends
    that were never acknowledged, and nothing on the disk can tell.
    """

    path: str
    offset: int
    size_bytes: int
    reason: str
    tail: bool
    quarantine: str


class LogReport(NamedTuple):
    """What stands in a log after it was opened, and what does not.

    ``lines`` is how many there are. ``torn_bytes`` were cut off the end: the beginning of
    a line that was never acknowledged. ``missing`` are sequence numbers, first and last
    of each gap, of lines that were written once; it is told at every opening.
    ``swept`` are the temporary files that were removed.
    """

    path: str
    lines: int
    torn_bytes: int = 0
    damaged: tuple[Damage, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    pending: PendingFate = PendingFate.ABSENT
    swept: tuple[str, ...] = ()

    @property
    def lost_nothing(self) -> bool:
        """No acknowledged line can be missing."""
        return not self.damaged and not self.missing
