"""Run targets from seeds in this process; print the traces: ``trace_of TAG:STEPS:SEED...``."""

from __future__ import annotations

import sys

from powercut.fuzz.drivers.swarm import SeededRun
from sim.disk.crash.persistence import POSIX
from sim.trace import Trace
from tests.registry import REGISTRY


def main(*runs: str) -> None:
    for run in runs:
        tag, steps, seed = run.split(":")
        trace = Trace()
        make_target = REGISTRY.target(tag).make_target
        ended = SeededRun(make_target, POSIX, int(seed), int(steps)).run(trace=trace)
        sys.stdout.write(f"run {run}\n")
        for line in (*trace.lines, f"failure {ended.failure!r}", f"digest {trace.digest()}"):
            sys.stdout.write(ascii(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
