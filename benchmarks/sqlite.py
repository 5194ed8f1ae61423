"""Real SQLite on the simulated disk: run, crash, recover, check the integrity, read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.row import Row, seconds_of
from crash_tests.workloads.sqlite import wal_full
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.verdicts import Exploration

_GOAL: Final = 5_000


def rows() -> Iterator[Row]:
    """Yield the row of SQLite, on one core."""
    found: list[Exploration] = []

    def run() -> None:
        found.append(explore(wal_full.run, wal_full.check, "posix", Limits(engine=Engine.BRUTE)))

    run()
    seconds = min(seconds_of(run) for _ in range(3))
    states = found[0].states
    yield Row(
        "SQLite crash, recover, integrity check / s", states / seconds, _GOAL, "/s", ">=", 1.0,
        f"{states} distinct crash images of a one-table workload, WAL and FULL, posix; "
        "beside the goal",
    )  # fmt: skip
