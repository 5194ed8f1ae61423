"""A real child process that runs the demo, is killed with SIGKILL, and has told what it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.meta.source_tree import ROOT

SECONDS = 60
"""How long one child may live; it needs less than one."""


class DemoProcess:
    """``python -m system demo`` on ``root``; ``hear`` is given every line that it has written."""

    def __init__(self, root: Path, jobs: int, framing: str, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._errors = root.with_suffix(".stderr")
        arguments = ["demo", "--root", str(root), "--jobs", str(jobs), "--framing", framing]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "system", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def heard(self) -> Iterator[str]:
        """Yield each line when it comes; ``hear`` has had it. It ends when the child does."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # Half a line was written by a child that was killed meanwhile: it has told nothing.
            if line.endswith("\n"):
                self._hear(line[:-1])
                yield line[:-1]

    def kill(self, delay_seconds: float) -> bool:
        """Kill it after a delay, and hear the rest; whether it had not ended before."""
        try:
            self._process.wait(delay_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for _line in self.heard():
            pass
        return self._ended() == -signal.SIGKILL

    def finish(self) -> tuple[int, str]:
        """Hear it to its end; return its exit code and what it has written to stderr."""
        for _line in self.heard():
            pass
        return self._ended(), self._errors.read_text("utf-8")

    def _ended(self) -> int:
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(SECONDS)
