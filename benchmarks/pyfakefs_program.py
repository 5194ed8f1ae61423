"""A program for ``interpose.py``: atomic writes of unmodified Python under the patches of pyfakefs.

Prints the medians in microseconds: that by functions of ``os``, then that by ``open``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter

from benchmarks.plain_writes import write_by_calls, write_by_open

ROUNDS = 5
WRITES = 20


def microseconds(write: Callable[[str], None]) -> float:
    """Return the time of one write."""
    start = perf_counter()
    for _ in range(WRITES):
        write("/d")
    return (perf_counter() - start) / WRITES * 1e6


def main() -> None:
    """Measure, and print."""
    with import_module("pyfakefs.fake_filesystem_unittest").Patcher() as patcher:
        patcher.fs.create_dir("/d")
        times = [
            (microseconds(write_by_calls), microseconds(write_by_open)) for _ in range(ROUNDS + 1)
        ][1:]
    for each in zip(*times, strict=True):
        sys.stdout.write(f"{median(each)}\n")


if __name__ == "__main__":
    main()
