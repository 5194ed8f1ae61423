"""The standard output and error of a command, which may take no more.

A command cannot do its work without its output, so the first refused write ends it. A refused write
to the error stream changes nothing: the exit code is still right.
"""

from __future__ import annotations

import sys
from errno import EPIPE
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputLost(Exception):
    """The standard output takes no more. It is no ``OSError``, because those are of the root.

    Cause: its file system is full, or the program that reads it has ended. Cure: write it to
    another file.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"the output: {reason}; write it to another place")
        self.has_no_reader = number == EPIPE


class _ErrorFile(FileIO):
    """A file that swallows everything from the first refused write on."""

    is_lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        if not self.is_lost:
            try:
                return super().write(data)
            except OSError as error:
                self.is_lost = True
                self.refused(error)
        return memoryview(data).nbytes

    def refused(self, error: OSError) -> None:
        """Do nothing about the first refused write."""


class _OutputFile(_ErrorFile):
    """As ``_ErrorFile``, but the first refused write raises ``OutputLost``."""

    def refused(self, error: OSError) -> None:
        raise OutputLost(error.errno or 0, error.strerror or str(error)) from None


def guard_output() -> None:
    """Replace the standard output and error of this process by guarded ones."""
    sys.stdout = _guarded(sys.stdout, _OutputFile)
    sys.stderr = _guarded(sys.stderr, _ErrorFile)


def _guarded(stream: TextIO, kind: type[FileIO]) -> TextIO:
    """Return a stream to the same file; a character that its encoding lacks is escaped.

    A closed stream is None, and stays so.
    """
    if not isinstance(stream, TextIOWrapper):
        return stream
    stream.flush()
    return TextIOWrapper(
        BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
