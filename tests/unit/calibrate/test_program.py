"""Programs of a calibration: the same calls on ``os`` and on a simulated disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from powercut.calibrate.program import Call, Caller, grouped, run_length, with_mode
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

PROGRAM: list[Call] = [
    ["mkdir", "d"],
    ["creat", "g"],
    ["write", "f", 2, 3, "B"],
    ["append", "f", 4, "C"],
    ["otrunc", "d/f", 5, "D"],
    ["trunc", "d/f", 2],
    ["falloc", "d/f", 0, 7],
    ["fsync", "f"],
    ["fdatasync", "d"],
    ["sync"],
    ["bg", "commit"],
    ["rename", "g", "h"],
    ["link", "f", "e"],
    ["symlink", "f", "l"],
    ["open", "h1", "i", "c"],
    ["hwrite", "h1", 0, 3, "E"],
    ["htrunc", "h1", 2],
    ["hfalloc", "h1", 1, 2],
    ["hfsync", "h1"],
    ["hfdatasync", "h1"],
    ["hclose", "h1"],
    ["mkdir", "s"],
    ["rmdir", "s"],
    ["unlink", "h"],
    ["tmpfile", "h2", "d"],
    ["hwrite", "h2", 0, 1, "T"],
    ["hlink", "h2", "t"],
    ["chmod", "t", 0o1700],
    ["utime", "t", 5],
]
REFUSED: list[tuple[Call, str]] = [
    (["mkdir", "d"], "EEXIST"),
    (["append", "no", 1, "Z"], "ENOENT"),
    (["unlink", "d"], "EISDIR"),
    (["rmdir", "d"], "ENOTEMPTY"),
    (["hwrite", "h9", 0, 1, "Z"], "EBADF"),
    (["hclose", "h1"], "EBADF"),
    (["hlink", "h1", "u"], "ENOENT"),
    (["tmpfile", "h3", "f"], "ENOTDIR"),
    (["chmod", "no", 0o1700], "ENOENT"),
    (["utime", "no", 5], "ENOENT"),
]
OUTCOME = {
    "d": "dir",
    "d/f": "D2,05",
    "e": "02,B3,C4",
    "f": "=e",
    "i": "E2,01",
    "l": "->f",
    "t": "T1 1700",
}


def _entry(api: object, root: str, path: str) -> tuple[str, int, str]:
    assert api is os or isinstance(api, Process)
    full = f"{root}/{path}"
    status = api.lstat(full)
    if api is not os:
        assert isinstance(api, Process)
        with api.open_file(full, "rb") as file:
            text = run_length(file.read())
    else:
        text = run_length(Path(full).read_bytes())
    return path, status.st_ino, with_mode(text, status.st_mode)


def test_program_has_the_same_results_on_a_directory_and_on_a_simulated_disk(
    tmp_path: Path,
) -> None:
    process = Process(Disk())
    for caller in (Caller(os, lambda p: f"{tmp_path}/{p}"), Caller(process, lambda p: f"/{p}")):
        assert [caller.do(call) for call in PROGRAM] == [None] * len(PROGRAM)
        assert [caller.do(call) for call, _ in REFUSED] == [name for _, name in REFUSED]
    files = [path for path, text in OUTCOME.items() if text not in {"dir", "->f"}]
    for api, root in ((os, str(tmp_path)), (process, "")):
        entries = [_entry(api, root, path) for path in files]
        assert grouped([*entries, ("d", -1, "dir"), ("l", -2, "->f")]) == OUTCOME


def test_call_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such call"):
        Caller(os, str).do(["explode", "f"])


@pytest.mark.parametrize(
    ("content", "runs"),
    [(b"", "empty"), (b"BBB\0\0C", "B3,02,C1"), (b"0", "?1"), (b" \x80", "?1,?1")],
    ids=["empty", "runs", "digit-zero", "not-printable"],
)
def test_content_is_written_as_runs(content: bytes, runs: str) -> None:
    assert run_length(content) == runs
