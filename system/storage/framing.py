"""The two framings, which make lines durable in different ways, behind one interface.

The lines are the same in both: sealed JSON with a ``seq``. ``log_file.py`` has the
first framing, ``pending_writer.py`` the second.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Framing(Enum):
    """The framing of a log; it may change from one opening to the next."""

    FRAMED = "framed"
    """One write and one barrier; the seal of a line shows whether the line is whole."""
    PENDING = "pending"
    """Lines are made durable in a file of their own before they are appended."""


class LineWriter(Protocol):
    """Writes groups of whole lines, one group after the other.

    ``write`` and ``append_unsynced`` raise ``OSError`` when the group could not be written,
    with nothing left of it, or ``LogStopped``.
    """

    def write(self, encoded: bytes) -> None:
        """Append a group; on return it and all earlier groups are durable."""
        ...

    def append_unsynced(self, encoded: bytes) -> None:
        """Append a group that becomes durable with the next ``write``."""
        ...

    def park(self) -> None:
        """Sync all groups and close the file until the next call; may raise ``LogStopped``."""
        ...


def pending_path(path: str) -> str:
    """Return the path of the pending entry that belongs to the log at ``path``."""
    return f"{path.removesuffix('.jsonl')}.pending"
