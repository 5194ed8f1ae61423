"""Lazy exploration: the time to decide every legal power cut, beside the time of a sample.

``python -m benchmarks.lazy [TAG...]`` prints the verdicts on all workloads, or those named, sampled
and decided.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log2
from time import process_time
from typing import Final

from benchmarks.row import Row
from crash_tests.workloads.runtime import runtime, runtime_pending
from crash_tests.workloads.sqlite import delete_extra, wal_full
from crash_tests.workloads.workload import Workload
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.verdicts import Exploration
from powercut.fuzz.memory import settled
from powercut.registry import Registry, WorkloadEntry
from sim.disk.crash.persistence import MODELS

# A workload, a model, and the seconds that the engine may take.
_GOALS: Final[tuple[tuple[str, Workload, str, float], ...]] = (
    ("SQLite DELETE/EXTRA", delete_extra, "posix", 1),
    ("SQLite WAL/FULL", wal_full, "posix", 20),
    *(("runtime", runtime, model, 10) for model in MODELS if model != "posix"),
    *(("runtime-pending", runtime_pending, model, 10) for model in MODELS if model != "posix"),
    ("runtime", runtime, "posix", 120),
    ("runtime-pending", runtime_pending, "posix", 120),
)
_MOST_MIB: Final = 1024


def rows() -> Iterator[Row]:
    """Yield a row for each goal, on one core; ``beside`` is the goal in seconds of CPU time."""
    for name, workload, model, goal in _GOALS:
        lazy, seconds = _explored(workload, model, Engine.LAZY)
        brute, sampled = _explored(workload, model, Engine.BRUTE)
        if not (lazy.safe and lazy.is_lazy):
            raise AssertionError(f"{name} under {model} is {lazy}")
        yield Row(
            f"{name}, {model}: every power cut", seconds, goal, "s", "<=", 1.0,
            f"{lazy.how}, {lazy.states:,} executions, {lazy.decided:.3g} survivor sets; building "
            f"images: {brute.how}, {sampled:.3g} s, so {seconds / sampled:.2g} times its time; "
            f"peak memory so far {_peak_mib()} MiB",
        )  # fmt: skip
    yield Row("every power cut: peak memory", _peak_mib(), _MOST_MIB, "MiB", "<=", 1.0)


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _explored(
    workload: Workload | WorkloadEntry, model: str, engine: Engine
) -> tuple[Exploration, float]:
    limits: Limits = replace(workload.limits, engine=engine)
    with settled():
        begin = process_time()
        found = explore(workload.run, workload.check, model, limits)
        return found, process_time() - begin


def _verdicts(tags: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table with the verdicts of both engines, where the first samples."""
    yield (
        "| workload | model | images | seconds | executions | survivor sets | seconds | ratio "
        "| verdict |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for workload in Registry.here().sound_workloads():
        for model in MODELS if not tags or workload.tag in tags else ():
            brute, sampled = _explored(workload, model, Engine.BRUTE)
            if brute.exhaustive:
                continue
            lazy, together = _explored(workload, model, Engine.AUTO)
            decided = f"{lazy.states:,} | 2^{log2(lazy.decided):.1f}" if lazy.is_lazy else "| "
            seconds = max(together - sampled, 0)
            yield (
                f"| {workload.tag} | {model} | {brute.built:,} | {sampled:.2g} | {decided} "
                f"| {seconds:.2g} | {seconds / sampled:.2g} | {lazy.how} |"
            )
    yield f"Peak memory: {_peak_mib()} MiB"


if __name__ == "__main__":
    for line in _verdicts(sys.argv[1:]):
        print(line, flush=True)
