"""How a line becomes durable: the two framings, behind one interface.

``pending_writer.py`` has the second. The lines themselves are the same in both: sealed
JSON with a ``seq``.
"""

from __future__ import annotations

from enum import Enum
from posixpath import splitext
from typing import Protocol

from system.storage.log_file import LogFile


class Framing(Enum):
    """Which framing a log has; it may change from one opening to the next."""

    FRAMED = "framed"
    """One append, one barrier: the seal of a line says whether it is whole."""
    PENDING = "pending"
    """Substrat's protocol: the line is durable in a file of its own before it is appended."""


class LineWriter(Protocol):
    """Makes lines durable, one after the other."""

    def write(self, encoded: bytes) -> None:
        """Append a line, durably when this returns.

        Raises ``OSError`` when it could not, with nothing of it left, or ``LogStopped``.
        """
        ...


class FramedWriter:
    """One append and one barrier a line."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def write(self, encoded: bytes) -> None:
        self._file.append(encoded)
        self._file.commit()


def pending_path(path: str) -> str:
    """Return where the pending entry of the log at ``path`` stands."""
    return f"{splitext(path)[0]}.pending"
