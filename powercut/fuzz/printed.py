"""The output of targets: thousands of runs print the same, so only that of one failure is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import TextIOBase
from typing import Final

from powercut.fuzz.target_run import TargetRun
from sim.choices import Diverged


class Printed(TextIOBase):
    """Takes the place of the standard output and error while targets run.

    A logger that is made meanwhile keeps it as its stream, so each process has one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[str] | None = None

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Take the place of both while the context lasts."""
        with redirect_stdout(self), redirect_stderr(self):
            yield

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Drop a text, or keep it while a run is repeated for it."""
        if self._kept is not None:
            self._kept.append(text)
        return len(text)

    def by(self, run: TargetRun) -> Sequence[str]:
        """Return the lines that a failed run prints, by repeating it once."""
        kept = self._kept = list[str]()
        try:
            with self.receiving(), suppress(Diverged):
                run.fresh().repeat(run.log)
        finally:
            self._kept = None
        return "".join(kept).splitlines()


PRINTED: Final = Printed()
