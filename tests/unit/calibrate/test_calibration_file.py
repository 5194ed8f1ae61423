"""Calibration files: written row by row, read plain or compressed, refused in one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from powercut.calibrate.calibration_file import (
    CannotWriteRows,
    NotACalibrationFile,
    read_rows,
    row_writer,
)
from powercut.calibrate.row import ObservedOutcome, Row

ROW = Row(
    fs="ext4",
    kernel="6.18.44",
    setup=[["write", "f", 0, 10, "a"]],
    ops=[["append", "f", 3, "B"], ["bg", "commit"]],
    results=[None, None],
    marks=[0, 2],
    log=[["w", 4096, 512], ["f"]],
    images=2,
    mount_failed=[],
    seen=[ObservedOutcome(k=1, out={"f": "a10"}, n=2, how=[0, -1, [], None])],
    seed=7,
    seconds=0.1,
)


def changed(**fields: Any) -> str:
    return json.dumps({**ROW, **fields}) + "\n"


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with row_writer(str(path)) as write:
        write(ROW)
        # In the file before it is closed.
        assert list(read_rows(path)) == [ROW]
        write(ROW)
    assert list(read_rows(path)) == [ROW, ROW]


def test_full_disk_is_one_sentence_with_the_number_of_rows() -> None:
    with (
        pytest.raises(CannotWriteRows) as refused,
        row_writer("/dev/full") as write,
    ):
        write(ROW)
    assert str(refused.value) == (
        "cannot write --json /dev/full: No space left on device after 0 rows"
    )


@pytest.mark.parametrize(
    "text", ["dir", "dir 1700", "empty 1755", "a10,05 1770", "->f", "=f", "ERREIO"]
)
def test_texts_of_outcomes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(changed(seen=[{"k": 1, "out": {"g": text}, "n": 1, "how": []}]))
    (row,) = read_rows(path)
    assert row["seen"][0]["out"] == {"g": text}


def test_compressed_rows_are_read_whatever_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(gzip.compress(changed().encode()))
    assert list(read_rows(path)) == [ROW]


def test_row_that_was_not_written_to_its_end_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(changed() + changed()[:40])
    assert list(read_rows(path)) == [ROW]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("hello", "line 1 is not a JSON object"),
        ("hello world\n", "line 1 is not a JSON object"),
        ("[]\n", "line 1 is not a JSON object"),
        ("{}\n", "line 1 has no list 'setup'"),
        (changed() + "{}\n", "line 2 has no list 'setup'"),
        (changed(fs="ntfs"), "line 1 is of an unknown file system: fs='ntfs'"),
        (changed(kernel=None), "line 1 names no kernel"),
        pytest.param(changed(kernel="6\x1b[0m"), "line 1 names no kernel", id="no kernel has ESC"),
        (changed(images=-1), "line 1 has no number of images, or no seed"),
        (changed(seed=None), "line 1 has no number of images, or no seed"),
        (changed(results=[None]), "line 1 has 2 calls and 1 results"),
        (changed(results=[None, 5]), "line 1 has a result that is no name of an errno"),
        (changed(ops=[["fly"], ["sync"]]), "line 1 has a malformed call: ['fly']"),
        (changed(ops=[["sync"], ["bg"]]), "line 1 has a malformed call: ['bg']"),
        (changed(setup=[["creat", "/etc"]]), "line 1 has a malformed call: ['creat', '/etc']"),
        (changed(setup=[["trunc", "f", 1048577]]), "line 1 has a malformed call: ['trunc', 'f', 1"),
        (changed(setup=[["trunc", "f", -1]]), "line 1 has a malformed call: ['trunc', 'f', -1]"),
        (changed(seen=[{"k": 3, "out": {}}]), "line 1 has a malformed outcome"),
        (changed(seen=[{"k": 0, "out": {"f": "B"}}]), "line 1 has a malformed outcome"),
        (changed(seen=[{"k": 0, "out": {"f": "B999999999"}}]), "line 1 has a malformed outcome"),
        ("[" * 100_000 + "\n", "line 1 is not a JSON object"),
    ],
    ids=lambda value: value[-40:].strip(),
)
def test_other_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(NotACalibrationFile) as refused:
        list(read_rows(path))
    assert f"{path} is no calibration file: {reason}" in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n", b"\x1f\x8b damaged", gzip.compress(changed().encode())[:-20]],
    ids=["binary", "damaged", "cut-off"],
)
def test_file_that_cannot_be_decoded_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(NotACalibrationFile, match=r"cannot read .*other: "):
        list(read_rows(path))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotACalibrationFile, match="No such file or directory"):
        list(read_rows(tmp_path / "missing"))
