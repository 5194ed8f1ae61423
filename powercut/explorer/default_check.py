"""The default check of ``explore``: it reads the files that the acknowledged values name."""

from __future__ import annotations

import os
from errno import EISDIR
from stat import S_ISDIR

from oracles.old_or_new import OldOrNew, paths_of
from powercut.explorer.judge import Check
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError


def default_check(workload: RecordedWorkload) -> Check:
    """Return the check that the files hold the old values or the new ones.

    Raises ``HarnessError`` for acknowledged values that are no mappings, and for a path that is not
    on the disk.
    """
    try:
        paths = paths_of(entry.value for entry in workload.history.entries)
    except TypeError as mistake:
        raise HarnessError(str(mistake)) from None
    root = workload.root
    elsewhere = [path for path in paths if not f"{path}/".startswith(f"{root}/")]
    if root and elsewhere:
        raise HarnessError(
            f"the acknowledged path {elsewhere[0]} is outside of the simulated disk, which is "
            f"{root}; acknowledge files below it"
        )
    old_or_new = OldOrNew(_contents(Process(Disk(workload.journal.image)), paths))
    return TwoPhases(lambda process: _contents(process, paths), old_or_new)


def _contents(process: Process, paths: list[str]) -> dict[str, bytes | None]:
    return {path: _content(process, path) for path in paths}


def _content(process: Process, path: str) -> bytes | None:
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    status = process.fstat(descriptor)
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, "a directory has no content to compare", path)
    content = process.pread(descriptor, status.st_size, 0)
    process.close(descriptor)
    return content
