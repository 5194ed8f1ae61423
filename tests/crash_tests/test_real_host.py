"""The file system of the real host, run on the simulated disk, loses no barrier.

The rig gives it a process in place of the module ``os``, so every campaign and exploration of
the runtime crashes the code that runs in production.
"""

from __future__ import annotations

from typing import Any

import pytest

from oracles.history import Known
from powercut.explorer.explore import explore
from powercut.explorer.judge import Check
from powercut.explorer.limits import Engine, Limits
from powercut.fuzz.source_patch import SourcePatch, patched
from powercut.reference import load
from sim.disk.calls.modules import FcntlModule, OsModule
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from system.host import RealFileSystem
from system.ports import OpenMode
from tests.registry import REGISTRY

SMALL = Limits(states_per_point=4, samples=2, engine=Engine.BRUTE)
BARRIERS = {
    "fsync": "self._calls.fsync(self._descriptor)",
    "fdatasync": "self._calls.fdatasync(self._descriptor)",
    "sync_dir": "calls.fsync(descriptor)",
}


class Found(KeyboardInterrupt):
    """Ends an exploration at its first failure, as Ctrl-C does."""


def _ending_at_failure(check: Check) -> Check:
    def ending(process: Process, known: Known) -> None:
        try:
            check(process, known)
        except Exception as failure:
            raise Found from failure

    return ending


@pytest.mark.parametrize("barrier", BARRIERS)
def test_exploration_misses_no_barrier_of_the_real_host(barrier: str) -> None:
    patch = SourcePatch("system.host", BARRIERS[barrier], "pass")
    with patched([patch], ["crash_tests"]):
        workload: Any = load(REGISTRY.config.workloads["runtime"])
        with pytest.raises(Found):
            explore(workload.run, _ending_at_failure(workload.check), "posix", SMALL)


def test_real_host_makes_the_same_operations_through_the_stand_in_of_os() -> None:
    journals = []
    for make in (lambda process: process, OsModule):
        process = Process(Disk())
        files = RealFileSystem("/", make(process), FcntlModule(process))
        files.mkdir("d")
        file = files.open("d/f", OpenMode.CREATE)
        file.pwrite(b"x", 0)
        file.fsync()
        file.close()
        files.replace("d/f", "d/g")
        files.sync_dir("d")
        assert files.read("d/g") == (b"x", 1)
        journals.append(list(process.disk.journal))
    assert journals[0] == journals[1]
    assert len(journals[0]) == 6
