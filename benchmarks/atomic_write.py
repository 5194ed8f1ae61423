"""One atomic write: the same six steps on the simulated disk, on tmpfs and on pyfakefs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.row import Row, paired
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

_DATA: Final = b"x" * 200
_WRITES: Final = 2_000
_SLOW_WRITES: Final = 200
_ROUNDS: Final = 31  # of about 20 milliseconds each: the median must not depend on other processes
_MICROSECONDS: Final = 1e6
_TMPFS: Final = Path("/dev/shm")


def rows() -> Iterator[Row]:
    """Yield one row for each peer."""
    yield _beside_tmpfs()
    if find_spec("pyfakefs") is not None:
        yield _beside_pyfakefs()


def _write(system: Any, directory: str) -> None:
    """Write a file atomically; ``system`` is ``os``, or has its functions."""
    temporary = f"{directory}/f.tmp"
    descriptor = system.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    system.write(descriptor, _DATA)
    system.fsync(descriptor)
    system.close(descriptor)
    system.replace(temporary, f"{directory}/f")
    opened = system.open(directory, os.O_RDONLY)
    system.fsync(opened)
    system.close(opened)


def _many(system: Any, directory: str, count: int) -> None:
    for _ in range(count):
        _write(system, directory)


def _simulated(count: int) -> None:
    process = Process(Disk())
    process.mkdir("/d")
    _many(process, "/d", count)


def _beside_tmpfs() -> Row:
    parent = str(_TMPFS) if os.access(_TMPFS, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        ours, beside = paired(
            lambda: _simulated(_WRITES), lambda: _many(os, directory, _WRITES), _ROUNDS
        )
    scale = _MICROSECONDS / _WRITES
    note = "os calls" if parent else "no tmpfs here: a temporary directory"
    return Row("atomic write / tmpfs", ours * scale, beside * scale, "µs", "<=", 2.0, note)


def _beside_pyfakefs() -> Row:
    filesystem = import_module("pyfakefs.fake_filesystem").FakeFilesystem()
    filesystem.create_dir("/d")
    system = import_module("pyfakefs.fake_os").FakeOsModule(filesystem)
    ours, beside = paired(
        lambda: _simulated(_SLOW_WRITES), lambda: _many(system, "/d", _SLOW_WRITES)
    )
    scale = _MICROSECONDS / _SLOW_WRITES
    return Row(
        "atomic write / pyfakefs", ours * scale, beside * scale, "µs", "<=", 1 / 50,
        "os calls on FakeOsModule; it models no crash",
    )  # fmt: skip
