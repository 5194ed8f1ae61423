"""CPython's own test suites on tmpfs and on the simulated disk, side by side.

``python -m tests.conformance.cpython [SUITE...]`` runs each suite twice in processes of their
own, and prints how many tests passed on tmpfs, how many of those on the disk, and every
difference with its reason. A difference without a reason is a mistake of ours: exit status 1.
The interpreter must have the package ``test``. In CPython 3.15 ``test_os`` contains
``test_posix``, and ``test_io`` contains ``test_fileio``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
SUITES: Final = (
    "test_os", "test_posix", "test_shutil", "test_tempfile", "test_pathlib", "test_glob",
    "test_mailbox", "test_dbm_dumb", "test_shelve", "test_fileio", "test_io", "test_zipfile",
    "test_tarfile", "test_sqlite3", "test_fcntl", "test_mmap", "test_logging",
)  # fmt: skip
TIMEOUT_SECONDS: Final = 900
REASONS: Final = (
    (r"starts another process", "child process"),
    (r"\.(test_del_on_shutdown|test_exit_on_shutdown)", "child process"),
    (r"test_lockf_(exclusive|share)|TestPosixSpawnP?\.test_dup2", "child process"),
    (r"test_fd_finalization", "numbers of descriptors"),
    (r"(file_io|path_calls|sqlite_connect)\.py' != ", "line of a warning"),
    (r"does its own I/O", "C library"),
    (r"testFinalizing", "private attribute"),
    (r"mkfifo|mknod|NoneInfoExtractTests", "special file"),
    (r"is_socket|AF_UNIX|UnixSocket|UnixSysLog|UnixDatagram", "socket file"),
    (r"chroot is not modelled", "chroot"),
    (r"fcntl: command", "command of fcntl"),
    (r"xattr|ExtendedAttribute", "extended attributes"),
    (r"writes to the real disk|PyZipFileTests\.\w+ \| skipped", "write outside the root"),
    (r"is not modelled", "refused by name"),
)
"""Patterns over "test | outcome", each with the reason of the difference; the first counts."""


class Difference(NamedTuple):
    """A test that passes on tmpfs and not on the disk; ``reason`` is empty if none is known."""

    test: str
    outcome: str
    reason: str


def run(suite: str, root: str) -> dict[str, str]:
    """Return the outcomes of a suite; below ``root`` on the disk, or on tmpfs if that is empty."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        file = Path(folder, "outcomes.json")
        command = [sys.executable, "-m", "tests.conformance.cpython_worker", suite, str(file)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": folder}
        finished = subprocess.run(
            [*command, *([root] if root else [])],
            cwd=folder, env=environment, timeout=TIMEOUT_SECONDS, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        if not file.exists():
            last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise SystemExit(f"{suite} ended with exit status {finished.returncode}: {last}")
        outcomes: dict[str, str] = json.loads(file.read_text("utf-8"))
        return outcomes


def differences(real: dict[str, str], disk: dict[str, str]) -> Iterator[Difference]:
    """Yield each test that passed on tmpfs and not on the disk."""
    for test, outcome in real.items():
        found = disk.get(test, "not run: its class was not set up")
        if outcome == "ok" and found != "ok":
            name = test.partition(".")[2]
            line = f"{name} | {found}"
            reasons = [reason for pattern, reason in REASONS if re.search(pattern, line)]
            yield Difference(name, found, reasons[0] if reasons else "")


def compare(suite: str) -> bool:
    """Print one row and its differences; return whether each has a reason."""
    real, disk = run(suite, ""), run(suite, "/disk")
    passed = [test for test, outcome in real.items() if outcome == "ok"]
    found = list(differences(real, disk))
    counts: dict[str, int] = {}
    for each in found:
        reason = each.reason or "NO REASON"
        counts[reason] = counts.get(reason, 0) + 1
    shown = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    sys.stdout.write(f"| {suite} | {len(passed)} | {len(passed) - len(found)} | {shown} |\n")
    for each in found:
        if not each.reason:
            sys.stdout.write(f"    {each.test}: {each.outcome}\n")
    sys.stdout.flush()
    return all(each.reason for each in found)


def main(suites: Sequence[str]) -> int:
    version = ".".join(map(str, sys.version_info[:3]))
    sys.stdout.write(f"CPython {version}\n\n| suite | on tmpfs | on the disk | differences |\n")
    sys.stdout.write("|---|---|---|---|\n")
    found = suites or [suite for suite in SUITES if find_spec(f"test.{suite}")]
    results = [compare(suite) for suite in found]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
