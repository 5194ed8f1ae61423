"""The output of targets: thousands of runs print the same, so only that of one failure is shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BufferedIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Final

from powercut.fuzz.target_run import TargetRun
from sim.choices import Diverged

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDERR: Final = 2


class _Bytes(BufferedIOBase):
    """The bytes that are printed: dropped, or kept in ``kept``."""

    name = "<stdout>"

    def __init__(self) -> None:
        super().__init__()
        self.kept: bytearray | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Drop bytes, or keep them."""
        view = memoryview(data)
        if self.kept is not None:
            self.kept += view
        return view.nbytes

    def fileno(self) -> int:
        """Return the descriptor of the standard error, for programs that ask about it."""
        return _STDERR

    def close(self) -> None:
        """Stay open: other runs print too."""


class Printed(TextIOWrapper):
    """Takes the place of the standard output and error while targets run.

    It is passed to ``redirect_stdout`` and ``redirect_stderr``. A logger that is made meanwhile
    keeps it as its stream, so each process has one. It takes what these take, and never fails: that
    is no failure of a target.
    """

    def __init__(self) -> None:
        self._bytes = _Bytes()
        super().__init__(self._bytes, "utf-8", "backslashreplace", "", write_through=True)

    def close(self) -> None:
        """Stay open: other runs print too."""

    def by(self, run: TargetRun) -> Sequence[str]:
        """Return the lines that a failed run prints, by repeating it once."""
        kept = self._bytes.kept = bytearray()
        try:
            with redirect_stdout(self), redirect_stderr(self), suppress(Diverged):
                run.fresh().repeat(run.log)
        finally:
            self._bytes.kept = None
        return kept.decode("utf-8", "surrogateescape").splitlines()


PRINTED: Final = Printed()
