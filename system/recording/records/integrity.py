"""The check of a record's integrity, as a report."""

from __future__ import annotations

from typing import NamedTuple

from system.recording.records.envelope_hash import HashFunction
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import envelope_function, find_problems

WHOLE_RECORD = "record"
ENVELOPE_ONLY = "envelope only"


class IntegrityReport(NamedTuple):
    """``problems`` is empty for a sound record.

    ``coverage`` says how much the hashes of the record cover. ``function`` is the one with which
    its envelope hash was computed, None if no function gives that hash. ``unknown_types`` are
    events of a later version; they are not a problem.
    """

    problems: tuple[str, ...]
    coverage: str
    function: HashFunction | None
    unknown_types: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether everything that can be checked holds."""
        return not self.problems


def verify_record_integrity(record: ExecutionRecord) -> IntegrityReport:
    """Check structure, hashes and event chain of a record."""
    return IntegrityReport(
        find_problems(record),
        ENVELOPE_ONLY if record.header.is_foreign else WHOLE_RECORD,
        envelope_function(record),
        record.unknown_types,
    )
