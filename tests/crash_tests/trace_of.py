"""Run one machine from a seed in this process, and print its trace: ``trace_of TAG SEED STEPS``."""

from __future__ import annotations

import sys

from crash_tests.targets.targets import target_named
from powercut.fuzz.drivers.seeded import run_seeded
from powercut.fuzz.target_run import TargetRun
from sim.trace import Trace


def main(tag: str, seed: str, steps: str) -> None:
    trace = Trace()
    failure = run_seeded(TargetRun(target_named(tag), trace=trace), int(seed), int(steps))
    for line in (*trace.lines, f"failure {failure!r}", f"digest {trace.digest()}"):
        sys.stdout.write(ascii(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
