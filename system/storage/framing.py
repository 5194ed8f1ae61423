"""How a line becomes durable: the two framings, behind one interface.

``pending_writer.py`` has the second. The lines themselves are the same in both: sealed
JSON with a ``seq``.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from system.storage.log_file import LogFile


class Framing(Enum):
    """Which framing a log has; it may change from one opening to the next."""

    FRAMED = "framed"
    """One write, one barrier: the seal of a line says whether it is whole."""
    PENDING = "pending"
    """Substrat's protocol: lines are durable in a file of their own before they are appended."""


class LineWriter(Protocol):
    """Writes groups of whole lines, one group after the other.

    Both calls raise ``OSError`` when the group could not be written, with nothing of it
    left, or ``LogStopped``.
    """

    def write(self, encoded: bytes) -> None:
        """Append a group; it, and all noted before it, is durable when this returns."""
        ...

    def append_unsynced(self, encoded: bytes) -> None:
        """Append a group that becomes durable with the next one that is written."""
        ...

    def park(self) -> None:
        """Make all noted durable and close the file until the next call, or ``LogStopped``."""
        ...


class FramedWriter:
    """One append and one barrier a group."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def write(self, encoded: bytes) -> None:
        self._file.append(encoded)
        self._file.commit()

    def append_unsynced(self, encoded: bytes) -> None:
        self._file.append_unsynced(encoded)

    def park(self) -> None:
        self._file.park()


def pending_path(path: str) -> str:
    """Return where the pending entry of the log at ``path`` stands."""
    return f"{path.removesuffix('.jsonl')}.pending"
