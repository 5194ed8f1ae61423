"""Sometimes-marks: states that a campaign must reach at least once to prove anything.

A target reaches a mark when it observes the state; a campaign adds up the marks of its runs
and reports those that were never reached. A mark is any short text. The constants are the
marks of the engine, and those that targets of storage have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

KILLED: Final = "a process was killed"
POWER_CUT_LOST: Final = "a power cut lost unsynced data"
POWER_CUT_KEPT: Final = "a power cut lost nothing although data was unsynced"
TORN: Final = "a write was torn"
NESTED_CRASH: Final = "a crash during recovery"
DEEP_CRASH: Final = "a crash during the recovery from a crash during recovery"
FAULT_FIRED: Final = "an injected fault reached the system"
RECOVERY_FAILED: Final = "a recovery failed under a fault"

IN_FLIGHT_KEPT: Final = "an operation in flight took effect"
IN_FLIGHT_LOST: Final = "an operation in flight had no effect"
TORN_TAIL_TRUNCATED: Final = "a torn tail was truncated"
PENDING_REPLAYED: Final = "a pending entry was replayed"
PENDING_REJECTED: Final = "a torn or stale pending entry was rejected"
QUARANTINED: Final = "damaged data was quarantined and reported"
DAMAGE_READ: Final = "a running system refused to return damaged data"
LINES_MISSING: Final = "a recovery reported acknowledged lines that damage had taken"
STALE_TEMPORARY_SWEPT: Final = "a stale temporary file was deleted"
ACTIVE_SUSPENDED: Final = "recovery suspended an active session"
STOPPED_BY_SYNC: Final = "a failed fsync stopped a log"


class Marks:
    """The marks reached so far, each with a count."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def reach(self, mark: str) -> None:
        """Count one observation of the state ``mark``."""
        self._counts[mark] += 1

    def add(self, other: Marks) -> None:
        """Add the counts of another run."""
        self._counts.update(other._counts)

    def count(self, mark: str) -> int:
        """Return how often ``mark`` was reached."""
        return self._counts[mark]

    @property
    def reached(self) -> dict[str, int]:
        """The counts of the marks that were reached, sorted by mark."""
        return dict(sorted(self._counts.items()))

    def never(self, expected: Iterable[str]) -> tuple[str, ...]:
        """Return those of ``expected`` that were never reached, in their order."""
        return tuple(mark for mark in expected if not self._counts[mark])
