"""The interposer: its cost for a call, for an atomic write, and for its installation.

The cost of a call is the time that it takes longer than the function of ``os`` itself, as a median
of alternating rounds. The atomic write goes through ``open`` and ``os``, on the disk, on tmpfs and
under pyfakefs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.plain_writes import write_by_calls, write_by_open
from benchmarks.row import Row, paired, seconds_of
from powercut.interpose.installation import install
from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

_CALLS: Final = 5_000
_WRITES: Final = 1_000
_FEW_WRITES: Final = 100
_ROUNDS: Final = 31
_MICROSECONDS: Final = 1e6
_MODULES: Final = 1_700
_TMPFS: Final = "/dev/shm"
_ROOT: Final = Path(__file__).parents[1]
# A tuple: the installation replaces what other containers hold.
_BARE: Final = (os.stat, os.getcwd)


def rows() -> Iterator[Row]:
    """Yield the rows of calls, of an atomic write and of the installation."""
    install()
    yield _inert()
    yield _active()
    yield _atomic_write("interposed atomic write by os / tmpfs", write_by_calls)
    yield _atomic_write("interposed atomic write by open / tmpfs", write_by_open)
    if find_spec("pyfakefs") is not None:
        yield from _beside_pyfakefs()
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


def _many(write: Callable[[str], None], directory: str, count: int) -> None:
    for _ in range(count):
        write(directory)


def _on_disk(write: Callable[[str], None], count: int) -> None:
    with interposed(Process(Disk())):
        _many(write, "/disk", count)


def _atomic_write(name: str, write: Callable[[str], None]) -> Row:
    parent = _TMPFS if os.access(_TMPFS, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        ours, beside = paired(
            lambda: _on_disk(write, _WRITES), lambda: _many(write, directory, _WRITES), _ROUNDS
        )
    scale = _MICROSECONDS / _WRITES
    note = "" if parent else "no tmpfs here: a temporary directory"
    return Row(name, ours * scale, beside * scale, "µs", "<=", 2.5, note)


def _beside_pyfakefs() -> Iterator[Row]:
    """Yield the same writes beside the patches of pyfakefs, which run in another process."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.pyfakefs_program"],
        cwd=_ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    writes = (("os", write_by_calls), ("open", write_by_open))
    for (way, write), line in zip(writes, ran.stdout.split(), strict=True):
        many = partial(_on_disk, write, _FEW_WRITES)
        seconds = median(seconds_of(many) for _ in range(_ROUNDS))
        yield Row(
            f"interposed atomic write by {way} / pyfakefs", seconds * _MICROSECONDS / _FEW_WRITES,
            float(line), "µs", "<=", 1 / 20, "Patcher of pyfakefs; it models no crash",
        )  # fmt: skip


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
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(_ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", _INSTALLATION],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules, seconds = ran.stdout.split()[-2:]
    return Row(
        "installation of the interposer", float(seconds) * 1e3, 300.0, "ms", "<=", 1.0,
        f"with {modules} modules loaded; beside the budget",
    )  # fmt: skip
