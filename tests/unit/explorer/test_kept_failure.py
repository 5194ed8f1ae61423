"""A kept failure is read as it was written; any other file is refused in one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from faults.crash_point import CrashPoint
from oracles.history import History
from powercut.explorer.explore import explore
from powercut.explorer.kept_failure import (
    KeptFailure,
    is_kept_failure,
    load_failure,
    save_failure,
)
from powercut.explorer.plain_value import decoded, encoded
from sim.disk.calls.process import Process
from sim.errors import HarnessError


def save(process: Process, ack: History) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"x")
    ack.attempt({"/f": b""})
    ack({"/f": b"x"})


@pytest.fixture
def kept() -> KeptFailure:
    found = explore(save, model="xfs")
    failure = found.failures[-1]
    violation = failure.violation
    return KeptFailure(
        "app:save", None, "xfs", 4096, 0, violation.property_name, violation.statement,
        failure.crashes, failure.entries, found.workload,
    )  # fmt: skip


def test_a_failure_is_read_as_it_was_written(kept: KeptFailure, tmp_path: Path) -> None:
    path = save_failure(kept, tmp_path / "failures")
    assert path == tmp_path / "failures" / f"{kept.fingerprint}.jsonl"
    assert list(path.parent.iterdir()) == [path]
    assert is_kept_failure(path)
    found = load_failure(path)
    assert found.recorded.journal.operations == kept.recorded.journal.operations
    assert found.recorded.history.entries == kept.recorded.history.entries
    assert found.recorded.places == kept.recorded.places
    for name in ("tag", "check", "model", "property_name", "statement", "crashes", "entries"):
        assert getattr(found, name) == getattr(kept, name)
    assert found.crashes[0].__class__ is CrashPoint


def test_equal_failures_give_equal_bytes(kept: KeptFailure, tmp_path: Path) -> None:
    first = save_failure(kept, tmp_path).read_bytes()
    assert save_failure(kept, tmp_path).read_bytes() == first


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 1.5, "text", b"\0bytes", [1, (b"2",)], {"/f": b"x", 3: None}, {}],
    ids=repr,
)
def test_plain_values_are_read_as_they_were_written(value: object) -> None:
    assert decoded(json.loads(json.dumps(encoded(value)))) == value


def test_a_value_that_is_not_plain_is_refused_by_name() -> None:
    with pytest.raises(HarnessError, match=r"the acknowledged value \{1\} cannot be stored"):
        encoded({1})


@pytest.mark.parametrize("plain", [{"set": []}, {"bytes": 3}, {"bytes": "?"}, {"a": 1, "b": 2}])
def test_other_data_is_no_stored_value(plain: object) -> None:
    with pytest.raises(ValueError, match=r"not a stored value|base64|Only base64"):
        decoded(plain)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\xff", b"[]\n", b"[" * 100_000, b'{"format": "else"}\n'],
    ids=lambda each: repr(each)[:20],
)
def test_other_files_are_no_kept_failures(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not is_kept_failure(path)
    assert not is_kept_failure(tmp_path / "missing")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b'"version": 1', b'"version": 2', "has version 2 of its format"),
        (b'"model"', b'"modle"', "is a malformed failure: 'model'"),
        (b"power-cut", b"flood", "is none of kill, power-cut"),
        (b'["write","/f",2', b'["write","/f",9', "operation 2 of the journal, Write"),
    ],
    ids=["version", "member", "crash point", "operation"],
)
def test_a_damaged_file_is_refused_in_one_sentence(
    kept: KeptFailure, tmp_path: Path, old: bytes, new: bytes, sentence: str
) -> None:
    path = save_failure(kept, tmp_path)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(HarnessError, match=sentence):
        load_failure(path)
