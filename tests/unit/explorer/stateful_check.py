"""A check that keeps state between its calls."""

from __future__ import annotations

import os

from oracles.history import Known
from sim.disk.calls.process import Process

_calls: list[int] = []


def reads_another_file_each_time(process: Process, _known: Known) -> None:
    """Look for a file whose name is the number of calls so far."""
    process.access("/0", os.F_OK)
    process.access(f"/{len(_calls)}", os.F_OK)
    _calls.append(1)
