"""Targets with a bug, whose worker process disturbs the campaign after some failures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from multiprocessing import parent_process

from crash_tests.targets.atomic_file import AtomicFileTarget
from system.ports import FileSystem, Ids
from tests.unit.cli.command_line import careless

_WRITES = count(1)
_WRITES_BEFORE = 150
"""More than those of the first batch of 30 runs of 10 steps."""


def _disturbed(disturb: Callable[[], None]) -> AtomicFileTarget:
    def write(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
        if parent_process() is not None and next(_WRITES) == _WRITES_BEFORE:
            disturb()
        careless(files, path, data, ids)

    return AtomicFileTarget("atomic-file", write)


def killing_its_worker() -> AtomicFileTarget:
    return _disturbed(lambda: os.kill(os.getpid(), signal.SIGKILL))


def terminating_the_campaign() -> AtomicFileTarget:
    return _disturbed(lambda: os.kill(os.getppid(), signal.SIGTERM))


def interrupting_all() -> AtomicFileTarget:
    """As a terminal does at Ctrl-C."""

    def interrupt() -> None:
        os.kill(os.getppid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    return _disturbed(interrupt)
