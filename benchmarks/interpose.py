"""The interposer: its cost for a call, for an atomic write, and for its installation.

The cost of a call is the time beyond that of the function of ``os`` itself, as a median of
alternating rounds. The atomic write goes through ``open`` and ``os``, on the disk and on tmpfs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.row import Row, paired
from powercut.interpose.installation import install
from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

_DATA: Final = b"x" * 200
_CALLS: Final = 5_000
_WRITES: Final = 1_000
_ROUNDS: Final = 31
_MICROSECONDS: Final = 1e6
_MODULES: Final = 1_700
_TMPFS: Final = "/dev/shm"
# A tuple: the installation replaces what other containers hold.
_BARE: Final = (os.stat, os.getcwd)


def rows() -> Iterator[Row]:
    """Yield the rows of calls, of an atomic write and of the installation."""
    install()
    yield _inert()
    yield _active()
    yield _atomic_write("interposed atomic write by os / tmpfs", _write_by_calls)
    yield _atomic_write("interposed atomic write by open / tmpfs", _write_by_open)
    yield _installation()


def _calls(stat: Callable[[str], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_CALLS):
            stat("/tmp")

    return run


def _added(name: str, budget_us: float, note: str) -> Row:
    ours, beside = paired(_calls(os.stat), _calls(_BARE[0]), _ROUNDS)
    added = max(ours - beside, 0.0) * _MICROSECONDS / _CALLS
    return Row(name, added, budget_us, "µs", "<=", 1.0, note)


def _inert() -> Row:
    return _added("interposed call, inert, added", 0.4, "os.stat; beside the budget")


def _active() -> Row:
    with interposed(Process(Disk())):
        return _added("interposed call, real path, added", 1.0, "os.stat; beside the budget")


def _write_by_calls(directory: str) -> None:
    """Write a file atomically by functions of ``os``."""
    temporary = f"{directory}/f.tmp"
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(descriptor, _DATA)
    os.fsync(descriptor)
    os.close(descriptor)
    _publish(directory)


def _write_by_open(directory: str) -> None:
    """Write a file atomically by a buffered file object."""
    with open(f"{directory}/f.tmp", "wb") as file:
        file.write(_DATA)
        file.flush()
        os.fsync(file.fileno())
    _publish(directory)


def _publish(directory: str) -> None:
    os.replace(f"{directory}/f.tmp", f"{directory}/f")
    opened = os.open(directory, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def _many(write: Callable[[str], None], directory: str) -> None:
    for _ in range(_WRITES):
        write(directory)


def _on_disk(write: Callable[[str], None]) -> None:
    with interposed(Process(Disk())):
        _many(write, "/disk")


def _atomic_write(name: str, write: Callable[[str], None]) -> Row:
    parent = _TMPFS if os.access(_TMPFS, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        ours, beside = paired(lambda: _on_disk(write), lambda: _many(write, directory), _ROUNDS)
    scale = _MICROSECONDS / _WRITES
    note = "" if parent else "no tmpfs here: a temporary directory"
    return Row(name, ours * scale, beside * scale, "µs", "<=", 2.5, note)


_INSTALLATION: Final = f"""
import importlib, io, pkgutil, sys, time, warnings
warnings.simplefilter("ignore")
skipped = ("test", "idlelib", "turtle", "antigravity", "this", "lib2to3.pgen2.conv", "__main__")
def names():
    for found in pkgutil.walk_packages(onerror=lambda name: None):
        if not any(part in found.name for part in skipped):
            yield found.name
import powercut.interpose.installation
for name in names():
    if len(sys.modules) >= {_MODULES}:
        break
    try:
        importlib.import_module(name)
    except BaseException:
        pass
real, modules = sys.__stdout__, len(sys.modules)
start = time.perf_counter()
powercut.interpose.installation.install()
real.write(f"{{modules}} {{time.perf_counter() - start}}")
real.flush()
import os
os._exit(0)
"""


def _installation() -> Row:
    root = Path(__file__).parents[1]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(root)}
    ran = subprocess.run(
        [sys.executable, "-c", _INSTALLATION],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules, seconds = ran.stdout.split()[-2:]
    return Row(
        "installation of the interposer", float(seconds) * 1e3, 300.0, "ms", "<=", 1.0,
        f"with {modules} modules loaded; beside the budget",
    )  # fmt: skip
