"""Every outcome that real kernels left is allowed by its model, and by ``posix``.

The recordings are calibration files: random programs on Linux 6.18, whose crash images the
kernel mounted. In the gate, a sample of the programs of each file is judged.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from powercut.calibrate.calibration_file import read_rows
from powercut.calibrate.judgement import MODEL_OF, Judgement, judge
from sim.disk.crash.persistence import (
    BTRFS,
    EXT4,
    EXT4_ORDERED,
    EXT4_WRITEBACK,
    POSIX,
    XFS,
    Coverage,
    DataBeforeSize,
    MetadataInOrder,
    PersistenceModel,
    RenameParts,
    RenameWaits,
    SyncedNames,
    Truncation,
)
from tests.sample import Sample

HERE: Final = Path(__file__).parent
RECORDINGS: Final = sorted((HERE / "recordings").glob("*.jsonl.gz"))
COUNTEREXAMPLES: Final = HERE / "counterexamples.jsonl"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.split(".")[0])
def test_a_recorded_outcome_is_allowed(path: Path, sample: Sample) -> None:
    recorded = list(read_rows(path))
    assert len(recorded) > 100
    rows = sample(recorded, 16)
    _all_allowed([judge(row) for row in rows])
    _all_allowed([judge(row, POSIX) for row in rows])


def _all_allowed(verdicts: list[Judgement]) -> None:
    assert [verdict.differences for verdict in verdicts if verdict.differences] == []
    assert [verdict.forbidden for verdict in verdicts if verdict.forbidden] == []
    assert any(verdict.allowed for verdict in verdicts)


# For each class of docs/disk.md, a model that overlooks it.
OVERLOOKING: Final[dict[str, PersistenceModel]] = {
    "B1": replace(BTRFS, rename_waits=RenameWaits.DATA),
    "B2": replace(BTRFS, rename_parts=RenameParts.NONE),
    "B3": replace(BTRFS, metadata_in_order=MetadataInOrder.ALWAYS, coverage=Coverage.ORDER),
    "B4": replace(BTRFS, metadata_in_order=MetadataInOrder.ALWAYS, coverage=Coverage.ORDER),
    "B5": replace(BTRFS, truncation=Truncation.WHOLE),
    "B7": replace(BTRFS, coverage=Coverage.ORDER),
    "B8": replace(BTRFS, rename_parts=RenameParts.NONE),
    "B9": replace(BTRFS, rename_parts=RenameParts.NONE),
    "B10": replace(BTRFS, coverage=Coverage.ORDER),
    "B11": replace(BTRFS, coverage=Coverage.ORDER),
    "B12": replace(BTRFS, coverage=Coverage.ORDER),
    "B13": replace(BTRFS, coverage=Coverage.ORDER),
    "B14": replace(BTRFS, metadata_in_order=MetadataInOrder.ALWAYS, coverage=Coverage.ORDER),
    "B15": replace(BTRFS, rename_parts=RenameParts.NONE),
    "B16": replace(BTRFS, coverage=Coverage.ORDER),
    "B17": replace(BTRFS, data_before_size=DataBeforeSize.NEW_BLOCKS),
    "B18": replace(BTRFS, coverage=Coverage.ORDER),
    "B19": replace(BTRFS, coverage=Coverage.ORDER),
    "B21": replace(BTRFS, metadata_in_order=MetadataInOrder.ALWAYS, coverage=Coverage.ORDER),
    "B22": replace(BTRFS, rename_parts=RenameParts.NONE),
    "B23": replace(BTRFS, metadata_in_order=MetadataInOrder.ALWAYS),
    "E1": replace(EXT4_ORDERED, data_before_size=DataBeforeSize.NEW_BLOCKS),
    "E2": replace(EXT4_ORDERED, data_before_size=DataBeforeSize.ALWAYS),
    "E3": replace(EXT4, rename_waits=RenameWaits.DATA),
    "J1": replace(EXT4_ORDERED, coverage=Coverage.EVERYTHING),
    "J2": replace(EXT4_ORDERED, synced_names=SyncedNames.FSYNC_AND_FDATASYNC),
    "T1": replace(EXT4_ORDERED, truncation=Truncation.WHOLE),
    "T5": replace(EXT4_WRITEBACK, truncation=Truncation.ZEROS_FIRST),
    "T6": replace(BTRFS, coverage=Coverage.ORDER),
    "T7": replace(BTRFS, truncation=Truncation.WHOLE),
    "T8": replace(XFS, truncation=Truncation.ZEROS_FIRST),
    "P1": replace(XFS, sequential=True, unit_bytes=4096, truncation=Truncation.WHOLE),
}
UNCONDITIONAL: Final = {"B6", "B20", "J3", "P2", "S1", "S2", "T2", "T3", "T4"}
"""Classes that every non-sequential model allows; the sequential models allow J3 too."""


def name_of(row: Any) -> str:
    """Return the class, the file system and the last call, because a class may have two rows."""
    *_, last = (call[0] for call in row["ops"] if call[0] != "bg")
    return f"{row['class']} {row['fs']} {last}"


@pytest.mark.parametrize("row", list(read_rows(COUNTEREXAMPLES)), ids=name_of)
def test_a_counterexample_is_allowed_and_a_model_that_overlooks_its_class_forbids_it(
    row: Any,
) -> None:
    for model in (MODEL_OF[row["fs"]], POSIX):
        verdict = judge(row, model)
        assert (verdict.differences, verdict.forbidden) == ([], [])
        assert verdict.allowed
    if row["class"] not in UNCONDITIONAL:
        assert judge(row, OVERLOOKING[row["class"]]).forbidden


def test_each_class_of_the_page_has_a_counterexample() -> None:
    page = (HERE.parents[1] / "docs/disk.md").read_text()
    named = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")}
    classes = {name for name in named if name[:1] in "BEJPST" and name[1:].isdecimal()}
    rows: list[Any] = list(read_rows(COUNTEREXAMPLES))
    assert classes == {row["class"] for row in rows}
