"""Run a target from seeds in this process; print the traces: ``trace_of TAG STEPS SEED...``."""

from __future__ import annotations

import sys

from powercut.fuzz.drivers.swarm import SeededRun
from sim.disk.crash.persistence import POSIX
from sim.trace import Trace
from tests.registry import REGISTRY


def main(tag: str, steps: str, *seeds: str) -> None:
    make_target = REGISTRY.target(tag).make_target
    for seed in seeds:
        trace = Trace()
        run = SeededRun(make_target, POSIX, int(seed), int(steps)).run(trace=trace)
        for line in (*trace.lines, f"failure {run.failure!r}", f"digest {trace.digest()}"):
            sys.stdout.write(ascii(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
