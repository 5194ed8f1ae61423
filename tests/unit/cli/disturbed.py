"""Targets with a bug, whose worker process disturbs the campaign after some failures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from multiprocessing import parent_process

from sim.disk.calls.process import Process
from tests.unit.fuzz.broken import save_without_barriers
from tests.unit.fuzz.saved_file import SavedFileTarget

_SAVES = count(1)
_SAVES_BEFORE = 150
"""More than those of the first batch of 30 runs of 10 steps."""


def _disturbed(disturb: Callable[[], None]) -> SavedFileTarget:
    def save(process: Process, path: str, data: bytes) -> None:
        if parent_process() is not None and next(_SAVES) == _SAVES_BEFORE:
            disturb()
        save_without_barriers(process, path, data)

    return SavedFileTarget("saved-file", save)


def killing_its_worker() -> SavedFileTarget:
    return _disturbed(lambda: os.kill(os.getpid(), signal.SIGKILL))


def terminating_the_campaign() -> SavedFileTarget:
    return _disturbed(lambda: os.kill(os.getppid(), signal.SIGTERM))


def interrupting_all() -> SavedFileTarget:
    """As a terminal does at Ctrl-C."""

    def interrupt() -> None:
        os.kill(os.getppid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    return _disturbed(interrupt)
