"""The standard output and error of a command: one that takes no more ends the command.

A program under test prints to the same files, so the error is none of its own ``OSError``s,
and no ``Exception`` that it could swallow.
"""

from __future__ import annotations

import sys
from errno import EPIPE
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputLost(BaseException):
    """The standard output, or the standard error, takes no more.

    Cause: its file system is full, or the program that reads it has ended. Cure: write it to
    another file.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.number = number
        self.reason = reason

    def __str__(self) -> str:
        return f"the output: {self.reason}; write it to another place"

    @property
    def has_no_reader(self) -> bool:
        """Whether the program that reads the output has ended."""
        return self.number == EPIPE


class _GuardedFile(FileIO):
    """A file that raises ``OutputLost`` once, and swallows everything from then on."""

    is_lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self.is_lost:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self.is_lost = True
            raise OutputLost(error.errno or 0, error.strerror or str(error)) from None


def guard_output() -> None:
    """Replace the standard output and error of this process by guarded ones."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    """Return a stream to the same file; a text that does not fit its encoding is escaped."""
    if not isinstance(stream, TextIOWrapper):
        return stream
    stream.flush()
    return TextIOWrapper(
        BufferedWriter(_GuardedFile(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
