"""Run one target from a seed in this process, and print its trace: ``trace_of TAG SEED STEPS``."""

from __future__ import annotations

import sys

from powercut.fuzz.drivers.swarm import SeededRun
from sim.disk.crash.persistence import POSIX
from sim.trace import Trace
from tests.registry import REGISTRY


def main(tag: str, seed: str, steps: str) -> None:
    trace = Trace()
    run = SeededRun(REGISTRY.target(tag).make_target, POSIX, int(seed), int(steps)).run(trace=trace)
    for line in (*trace.lines, f"failure {run.failure!r}", f"digest {trace.digest()}"):
        sys.stdout.write(ascii(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
