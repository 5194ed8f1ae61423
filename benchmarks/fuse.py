"""Any program on the simulated disk, through FUSE, beside the same program on tmpfs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.row import Row, seconds_of
from powercut.fuse.disk_mount import MountWay, prepare_mounts
from powercut.fuse.image_check import CommandCheck
from powercut.fuse.program_judge import ProgramJudge
from powercut.fuse.record import record
from powercut.fuse.run_program import new_mount_point, run_program
from powercut.fuzz.campaign.workers import cores
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from sim.errors import HarnessError

_ROOT: Final = Path(__file__).parents[1]
_EXAMPLES: Final = _ROOT / "examples"
_SCRIPT: Final = f"sh {_EXAMPLES}/git-setup.sh && sh {_EXAMPLES}/git.sh"
_CHECK: Final = f'test ! -s "$POWERCUT_ACKS" || sh {_EXAMPLES}/git-check.sh'
_CHECKS: Final = 2_000


def rows() -> Iterator[Row]:
    """Yield the rows; none where FUSE cannot be mounted."""
    try:
        way = prepare_mounts()
    except HarnessError:
        return
    yield _atomic_write(way)
    yield from _git(way)


def _atomic_write(way: MountWay) -> Row:
    program = (sys.executable, str(_ROOT / "benchmarks" / "atomic_write_program.py"))
    with new_mount_point() as path:
        run = run_program(Disk(now_ns=time.time_ns), program, path, way)
    ours, beside = (float(line.text) for line in run.lines)
    return Row(
        "atomic write through FUSE / tmpfs", ours, beside, "µs", "<=", 12.0, way.value
    )  # fmt: skip


def _git(way: MountWay) -> Iterator[Row]:
    """Record git init and three commits, then judge them under all models."""
    command = ("sh", "-c", _SCRIPT)
    record(command, "", "", way)
    start = time.perf_counter()
    recording = record(command, "", _CHECK, way)
    recorded_s = time.perf_counter() - start
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        direct_s = seconds_of(
            lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True)
        )
        acks = Path(folder, ".git", "acks")
        acks.write_text("committed 1\ncommitted 2\ncommitted 3\n")
        environment = {**os.environ, "POWERCUT_ACKS": str(acks)}
        check_s = seconds_of(
            lambda: subprocess.run(("sh", "-c", _CHECK), cwd=folder, env=environment, check=True)
        )
    yield Row(
        "git, 3 commits, recorded / tmpfs", recorded_s * 1e3, direct_s * 1e3, "ms", "<=", 5.0,
        f"{len(recording.journal)} operations; at most 500 ms",
    )  # fmt: skip
    os.makedirs(recording.mount_point)
    try:
        judge = ProgramJudge(recording, CommandCheck(_CHECK, 10, recording, way), _CHECKS, cores())
        judged_s = seconds_of(lambda: judge.judge(tuple(MODELS.values())))
    finally:
        os.rmdir(recording.mount_point)
    yield Row(
        "git, 3 commits, all models, per check / check", judged_s / _CHECKS * 1e3, check_s * 1e3,
        "ms", "<=", 9.0, f"{_CHECKS:,} checks in {judged_s:.0f} s; at most 180 s",
    )  # fmt: skip
