"""Runs pjdfstest and fsx on the mount of a simulated disk, and beside it on tmpfs.

Neither is a part of this repository. Fetch them first::

    git clone https://github.com/pjd/pjdfstest
    git clone https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git
    sudo python -m tests.conformance.posix_suites --pjdfstest pjdfstest --xfstests xfstests-dev

Both are built here, with a C compiler and without autotools. It prints the assertions of
pjdfstest that fail on the mount and not on tmpfs, and the failures of fsx. The differences that
remain are listed with their reasons in ``docs/how-to/any-program.md``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from powercut.fuse.disk_mount import MountWay, prepare_mounts
from powercut.fuse.run_program import new_mount_point, run_program
from sim.disk.disk import Disk

_FUNCTIONS: Final = (
    *("openat", "unlinkat", "mkdirat", "linkat", "symlinkat", "renameat", "mkfifoat", "mknodat"),
    *("fchmodat", "fchownat", "fstatat", "posix_fallocate", "readlinkat", "faccessat"),
    *("utimensat", "struct_stat_st_atim", "struct_stat_st_ctim", "struct_stat_st_mtim"),
    "sys_sysmacros_h",
)
_HEADERS: Final = (
    *("errno.h", "sys/types.h", "sys/stat.h", "stdlib.h", "string.h", "stdio.h", "unistd.h"),
    *("stdint.h", "fcntl.h", "malloc.h", "sys/ioctl.h", "linux/falloc.h", "linux/fs.h"),
    *("getopt.h", "assert.h", "sys/param.h"),
)
_MACROS: Final = """
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define rounddown_64(x, y) ((x) / (y) * (y))
#define roundup_64(x, y) (((x) + (y) - 1) / (y) * (y))
"""
_SPECIAL: Final = ("mkfifo", "mknod")
"""Tests of special files, which are not modelled; other tests are run without them."""

_RESULT: Final = re.compile(r"^(ok|not ok) (\d+)", re.MULTILINE)
_FSX: Final = ("-q", "-N", "20000", "-S")


def main(arguments: Sequence[str]) -> int:
    """Run the suites that are named; return 1 if one fails on the mount alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pjdfstest", type=Path)
    parser.add_argument("--xfstests", type=Path)
    parser.add_argument("--seeds", type=int, default=5, help="runs of fsx")
    asked = parser.parse_args(arguments)
    way = prepare_mounts()
    failed = False
    if asked.pjdfstest is not None:
        failed |= _pjdfstest(asked.pjdfstest.resolve(), way)
    if asked.xfstests is not None:
        failed |= _fsx(asked.xfstests.resolve(), asked.seeds, way)
    return int(failed)


def _pjdfstest(source: Path, way: MountWay) -> bool:
    defines = [f"#define HAVE_{name.upper()} 1" for name in _FUNCTIONS]
    counts: Counter[str] = Counter()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "pjdfstest")
        shutil.copytree(source, copy)
        (copy / "config.h").write_text("\n".join(("#define _GNU_SOURCE 1", *defines, "")))
        _compile(copy, "pjdfstest.c", "pjdfstest")
        for test in sorted((copy / "tests").rglob("*.t")):
            if test.parent.name in _SPECIAL:
                continue
            test.write_text(test.read_text().replace(" fifo block char socket", ""))
            mounted = _results(_on_mount(("/bin/sh", str(test)), way))
            counts.update(mounted.values())
            not_ok = [number for number, result in mounted.items() if result != "ok"]
            if not_ok:
                real = _results(_on_tmpfs(("/bin/sh", str(test))))
                alone = [number for number in not_ok if real.get(number) == "ok"]
                name = f"{test.parent.name}/{test.name}"
                both = len(not_ok) - len(alone)
                click.echo(f"{name}: not ok on the mount alone: {alone}; on both: {both}")
                failed |= bool(alone)
    click.echo(f"pjdfstest on the mount: {counts['ok']:,} ok, {counts['not ok']:,} not ok")
    return failed


def _results(output: str) -> dict[int, str]:
    return {int(number): result for result, number in _RESULT.findall(output)}


def _fsx(source: Path, seeds: int, way: MountWay) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        headers = "".join(f"#include <{name}>\n" for name in _HEADERS)
        (Path(folder) / "global.h").write_text(f"{headers}{_MACROS}")
        # The helpers of the suite that need a library are left out.
        program = Path(folder) / "fsx"
        _compile(source / "ltp", "fsx.c", str(program), f"-I{folder}", f"-I{source / 'src'}",
                 "-DFALLOCATE")  # fmt: skip
        failed = 0
        for seed in range(1, seeds + 1):
            output = _on_mount((str(program), *_FSX, str(seed), "file"), way)
            if "All" not in output:
                failed += 1
                click.echo(f"fsx, seed {seed}: {output.strip()}")
    click.echo(f"fsx: {seeds} runs of {_FSX[2]} operations, {failed} failed")
    return bool(failed)


def _compile(folder: Path, source: str, program: str, *options: str) -> None:
    common = ("cc", "-O1", "-w", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-I.")
    subprocess.run([*common, *options, "-o", program, source], cwd=folder, check=True)


def _on_tmpfs(command: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


def _on_mount(command: tuple[str, ...], way: MountWay) -> str:
    with new_mount_point() as path:
        run = run_program(Disk(now_ns=time.time_ns), command, path, way)
    return "\n".join(line.text for line in run.lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
