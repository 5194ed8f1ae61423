"""The report of the recovery of a write-ahead log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from system.storage.log_report import Damage, spans_text


@dataclass(slots=True)
class WalReport:
    """``segments`` and ``entries`` count the segments and kept entries after the checkpoint.

    ``torn_bytes`` at the ends of segments were never acknowledged. ``damaged`` are quarantined
    bytes; ``missing`` has the first and the last number of each gap of durable entries.
    ``corrupted`` are executions that lack an event or their start. ``findings`` are sentences
    about the checkpoint, snapshots, missing files, and others in the place of files of the log.
    ``foreign`` are sentences about files that are no part of the log, and no damage. ``swept`` are
    temporary files that were removed.
    """

    segments: int = 0
    entries: int = 0
    torn_bytes: int = 0
    damaged: list[Damage] = field(default_factory=list)
    missing: list[tuple[int, int]] = field(default_factory=list)
    corrupted: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)

    @property
    def lost_nothing(self) -> bool:
        """Whether it is certain that no acknowledged entry is missing."""
        return not (self.damaged or self.missing or self.corrupted or self.findings)


def missing_text(spans: Iterable[tuple[int, int]]) -> str:
    """Return the sentence about the first and last numbers of missing entries."""
    return (
        f"recording: entries are missing: {spans_text(spans)}; executions that lack one are"
        " corrupted, and the sessions' logs have the responses of their turns"
    )
