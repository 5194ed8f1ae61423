"""Lazy exploration: every legal power cut decided, beside the time that a sample takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from benchmarks.row import Row, seconds_of
from crash_tests.workloads.runtime import runtime, runtime_pending
from crash_tests.workloads.sqlite import delete_extra, wal_full
from crash_tests.workloads.workload import Workload
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine
from powercut.explorer.verdicts import Exploration
from powercut.fuzz.memory import settled

# A workload, a model, and the seconds in which the engine must be done.
_GOALS: Final[tuple[tuple[str, Workload, str, float], ...]] = (
    ("SQLite DELETE/EXTRA", delete_extra, "posix", 1),
    ("SQLite WAL/FULL", wal_full, "posix", 20),
    ("runtime", runtime, "ext4-ordered", 10),
    ("runtime", runtime, "btrfs", 10),
    ("runtime-pending", runtime_pending, "ext4-ordered", 10),
    ("runtime", runtime, "posix", 120),
)


def rows() -> Iterator[Row]:
    """Yield a row for each goal, on one core; ``beside`` is the goal in seconds."""
    for name, workload, model, goal in _GOALS:
        lazy, seconds = _explored(workload, model, Engine.LAZY)
        brute, sampled = _explored(workload, model, Engine.BRUTE)
        if not (lazy.safe and lazy.is_lazy):
            raise AssertionError(f"{name} under {model} is {lazy}")
        yield Row(
            f"{name}, {model}: every power cut", seconds, goal, "s", "<=", 1.0,
            f"{lazy.how}, {lazy.states:,} executions, {lazy.decided:.3g} survivor sets; building "
            f"images: {brute.how}, {sampled:.3g} s, so {seconds / sampled:.2g} times its time",
        )  # fmt: skip


def _explored(workload: Workload, model: str, engine: Engine) -> tuple[Exploration, float]:
    found: list[Exploration] = []

    def run() -> None:
        limits = replace(workload.limits, engine=engine)
        found.append(explore(workload.run, workload.check, model, limits))

    with settled():
        seconds = seconds_of(run)
    return found[0], seconds
