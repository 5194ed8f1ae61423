"""The sometimes-marks of recording, read from the files of a crash image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from oracles.marks import QUARANTINED, TORN_TAIL_TRUNCATED
from oracles.recording.crash_points import STAGES
from oracles.recording.pack_reader import members_of
from oracles.recording.root_files import checkpoint_number
from oracles.recording.violations import BrokenRecord
from oracles.recording.wal_reader import PART, ParsedLogRecord, log_record_of, read_segment
from oracles.violation import TornRecord

STAGE_MARKS: Final = tuple(f"an execution was interrupted at {stage}" for stage in STAGES)
FINAL_REDONE: Final = "recovery completed a record from the log"
RECORDS_BEFORE_NUMBER: Final = "a checkpoint was crashed between its records and its number"
NUMBER_BEFORE_SEGMENTS: Final = "a checkpoint was crashed between its number and its segments"
SNAPSHOT_BESIDE_RECORD: Final = "a checkpoint was crashed before old snapshots were removed"
DAMAGE_CONTAINED: Final = "entries behind damage were kept"
SEGMENT_CHANGED: Final = "a failed barrier changed the segment"
INVALIDATION_KEPT: Final = "an invalidated record survived a redo"

RECORDING_MARKS: Final = (
    *STAGE_MARKS,
    TORN_TAIL_TRUNCATED,
    QUARANTINED,
    FINAL_REDONE,
    RECORDS_BEFORE_NUMBER,
    NUMBER_BEFORE_SEGMENTS,
    SNAPSHOT_BESIDE_RECORD,
    DAMAGE_CONTAINED,
    SEGMENT_CHANGED,
    INVALIDATION_KEPT,
)

RARE_RECORDING_MARKS: Final = (
    *(f"an execution was interrupted at {stage}" for stage in ("after_failure", "during_fallback")),
    QUARANTINED,
    RECORDS_BEFORE_NUMBER,
    SNAPSHOT_BESIDE_RECORD,
    DAMAGE_CONTAINED,
    SEGMENT_CHANGED,
    INVALIDATION_KEPT,
)
"""Marks that a campaign of one minute over all targets may miss."""

_FINAL: Final = 6
_JSON: Final = ".json"
_PACK: Final = ".pack"


def marks_of_image(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the marks of the files that a crash has left, by path."""
    return tuple(dict.fromkeys(_marks(files)))


def _marks(files: Mapping[str, bytes]) -> Iterator[str]:
    try:
        number = checkpoint_number(files["checkpoint"])
    except (KeyError, TornRecord):
        number = 0
    segments = list(_segments(files))
    if any(last <= number for last, _ in segments):
        yield NUMBER_BEFORE_SEGMENTS
    if sum(path.startswith("snapshots/") and path.endswith(_PACK) for path in files) > 1:
        yield SNAPSHOT_BESIDE_RECORD
    packed = set(_packed(files))
    for _, log_records in segments:
        for sequence, entry_type, log_record in log_records:
            record = files.get(f"records/{log_record.execution_id}{_JSON}")
            if sequence <= number:
                continue
            if record is not None and b'"manually_invalidated"' in record:
                yield INVALIDATION_KEPT
            elif log_record.execution_id in packed:
                yield RECORDS_BEFORE_NUMBER
            elif entry_type == _FINAL:
                yield FINAL_REDONE


def _packed(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the ids of the records in packs that are not damaged."""
    for path, content in files.items():
        if path.startswith("records/") and path.endswith(_PACK):
            with suppress(BrokenRecord):
                yield from members_of(content)


def _segments(
    files: Mapping[str, bytes],
) -> Iterator[tuple[int, list[tuple[int, int, ParsedLogRecord]]]]:
    """Yield the last number and the log records of each segment that has an entry."""
    for path, content in files.items():
        segment = read_segment(content) if path.endswith(".wal") else None
        if segment is None or not segment.entries:
            continue
        whole = [entry for entry in segment.entries if entry.entry_type != PART]
        log_records = [(entry.sequence, entry.entry_type, log_record_of(entry)) for entry in whole]
        yield segment.entries[-1].sequence, log_records


def stage_mark(stage: str) -> str:
    """Return the mark of an execution that was interrupted at a stage."""
    return STAGE_MARKS[STAGES.index(stage)]
