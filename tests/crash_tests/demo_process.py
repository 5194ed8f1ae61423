"""A real child process that prints its progress and is killed with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.meta.source_tree import ROOT

SECONDS = 60
"""Limit of one process; it needs less than one second."""


class RealProcess:
    """``python -m`` with ``arguments``; ``on_line`` is called with every output line.

    ``errors`` is the file that gets its stderr.
    """

    def __init__(
        self, arguments: Sequence[str], errors: Path, on_line: Callable[[str], None]
    ) -> None:
        self._on_line = on_line
        self._errors = errors
        with self._errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def lines(self) -> Iterator[str]:
        """Yield each line as soon as it is written, until the process ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A killed process may have written a part of a line, which proves nothing.
            if line.endswith("\n"):
                self._on_line(line[:-1])
                yield line[:-1]

    def kill(self, delay_seconds: float) -> bool:
        """Kill the process after a delay and read its remaining lines.

        Return whether it was killed before it ended by itself.
        """
        try:
            self._process.wait(delay_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for _line in self.lines():
            pass
        return self._ended() == -signal.SIGKILL

    def finish(self) -> tuple[int, str]:
        """Read all lines until the process ends; return its exit code and its stderr."""
        for _line in self.lines():
            pass
        return self._ended(), self._errors.read_text("utf-8")

    def _ended(self) -> int:
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(SECONDS)


class DemoProcess(RealProcess):
    """``python -m system demo`` on ``root``."""

    def __init__(self, root: Path, jobs: int, framing: str, on_line: Callable[[str], None]) -> None:
        arguments = ["demo", "--root", str(root), "--jobs", str(jobs), "--framing", framing]
        super().__init__(["system", *arguments], root.with_suffix(".stderr"), on_line)
