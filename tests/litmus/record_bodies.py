"""Records the litmus bodies on real file systems: ``python -m tests.litmus.record_bodies FS OUT``.

It needs root, FUSE and loop devices, like ``powercut calibrate``. OUT gets one JSON object:
for each body the outcomes that were seen after its last call. FS is a name of a calibration.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final, cast

from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.program import Call
from powercut.calibrate.recorder import recorder
from powercut.calibrate.row import Program
from tests.litmus.allowed import LITMUS
from tests.litmus.body import Calls
from tests.litmus.litmus import Litmus

IMAGES: Final = 60
# What the kernel may do by itself after the last call.
BACKGROUND: Final[tuple[tuple[Call, ...], ...]] = (
    (),
    (("bg", "commit"),),
    (("bg", "logsync"),),
    (("bg", "flush", "f"), ("bg", "commit")),
    (("bg", "flush", "t"), ("bg", "commit")),
    (("bg", "part", "f", 4096, 4096), ("bg", "commit")),
    (("bg", "syncfs"),),
)


class Written:
    """Stands for ``Calls``: writes down the calls of a body as those of a program.

    ``possible`` is False after a call that programs do not have.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.possible = True

    def create(self, *paths: str) -> None:
        self.calls += [("creat", path) for path in paths]

    def write(self, path: str, text: str, at: int = 0) -> None:
        self.possible &= "," not in text
        self.calls.append(("write", path, at, int(text[1:].split(",", maxsplit=1)[0]), text[0]))

    def write_synced(self, path: str, text: str, at: int = 0) -> None:
        self.possible &= "," not in text
        self.calls += [
            ("open", "d", path, "d"), ("hwrite", "d", at, int(text[1:]), text[0]), ("hclose", "d"),
        ]  # fmt: skip

    def append(self, path: str, text: str) -> None:
        self.calls.append(("append", path, int(text[1:]), text[0]))

    def truncate(self, path: str, size: int) -> None:
        self.calls.append(("trunc", path, size))

    def allocate(self, path: str, offset: int, length: int) -> None:
        self.calls.append(("falloc", path, offset, length))

    def chmod(self, path: str, mode: int) -> None:
        self.possible = False

    def sync(self) -> None:
        self.calls.append(("sync",))

    def fsync(self, path: str = "") -> None:
        self.calls.append(("fsync", path))

    def mkdir(self, *paths: str) -> None:
        self.calls += [("mkdir", path) for path in paths]

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a call that has the same name and arguments in both."""
        return lambda *arguments: self.calls.append((name, *arguments))


def written(litmus: Litmus) -> Program | None:
    """Return a body as a program, or None if it has a call that programs do not have."""
    setup, body = Written(), Written()
    litmus.setup(cast(Calls, setup))
    litmus.body(cast(Calls, body))
    if not (setup.possible and body.possible):
        return None
    return Program(tuple(setup.calls), tuple(body.calls))


def outcome_line(outcome: Mapping[str, str], paths: list[str]) -> str:
    """Return an outcome in the notation of the litmus tests."""
    return " ".join(f"{path}={_shown(outcome, path)}" for path in paths)


def _shown(outcome: Mapping[str, str], path: str) -> str:
    text = outcome.get(path, "-")
    text = outcome[text[1:]] if text.startswith("=") else text
    if text == "dir":
        return "empty"
    letters = "".join(run[0] if run[0] in "ABCD0" else "S" for run in text.split(","))
    if text[0] in "-e":
        return text
    counts = [int(run[1:]) for run in text.split(",")]
    runs = groupby(zip(letters, counts, strict=True), key=lambda run: run[0])
    return ",".join(f"{letter}{sum(count for _, count in run)}" for letter, run in runs)


def record(name: str) -> dict[str, list[str]]:
    """Return for each body the outcomes that file system ``name`` left after its last call."""
    file_system = FILE_SYSTEMS[name]
    seen: dict[str, list[str]] = {}
    with recorder(file_system) as opened:
        for litmus in LITMUS:
            program = written(litmus)
            if program is None:
                continue
            paths = [part.split("=")[0] for part in next(iter(litmus.allowed("scc"))).split()]
            found: set[str] = set()
            for background in BACKGROUND:
                calls = (*program.calls, *background)
                row = opened.record(Program(program.setup, calls), 1, IMAGES)
                returned = [s for s in row["seen"] if s["k"] >= len(program.calls)]
                found |= {outcome_line(each["out"], paths) for each in returned}
            seen[litmus.name] = sorted(found)
    return seen


def _main(name: str, out: str) -> None:
    Path(out).write_text(json.dumps(record(name), indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    _main(*sys.argv[1:])
