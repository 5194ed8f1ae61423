"""A program for ``fuse.py``: atomic writes in its directory and on tmpfs, in turn.

Prints the medians in microseconds, that of its directory first.
"""

from __future__ import annotations

import os
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

ROUNDS = 15
WRITES = 150


def atomic_write(directory: str) -> None:
    """Write a file atomically, by six calls beside ``open`` and ``close`` of the directory."""
    temporary = f"{directory}/f.tmp"
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(descriptor, b"x" * 200)
    os.fsync(descriptor)
    os.close(descriptor)
    os.replace(temporary, f"{directory}/f")
    opened = os.open(directory, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def microseconds(directory: str) -> float:
    """Return the time of one write."""
    start = perf_counter()
    for _ in range(WRITES):
        atomic_write(directory)
    return (perf_counter() - start) / WRITES * 1e6


def main() -> None:
    """Measure, and print."""
    with TemporaryDirectory(dir="/dev/shm") as memory:
        times = [(microseconds("."), microseconds(memory)) for _ in range(ROUNDS + 1)][1:]
    for each in zip(*times, strict=True):
        sys.stdout.write(f"{median(each)}\n")


if __name__ == "__main__":
    main()
