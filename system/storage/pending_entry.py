"""The pending entry of the framing ``pending``, as a crash may have left it.

It is replayed only when its seal holds (hole R1) and it is exactly the next line of the
log; an older one that came back because its removal was not durable is stale (hole R3).
"""

from __future__ import annotations

from dataclasses import dataclass

from system.errors import BadSeal
from system.ports import FileSystem
from system.storage.atomic_file import read_whole
from system.storage.line import decode_line
from system.storage.log_report import PendingFate


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """What was found, and what is to become of it.

    ``encoded`` is the line with its line end. ``missing`` is the gap before an entry that
    is ahead of the log: it was written only because the lines in the gap were durable.
    """

    fate: PendingFate
    encoded: bytes = b""
    missing: tuple[tuple[int, int], ...] = ()

    @property
    def is_next(self) -> bool:
        """Whether it is exactly the next line of the log."""
        return self.fate is PendingFate.REPLAYED


def read_pending_entry(
    files: FileSystem, path: str, session_id: str, last_seq: int
) -> PendingEntry:
    """Judge the entry at ``path`` against a log whose last good line is ``last_seq``.

    Raises ``OSError`` and ``NewerFormat``.
    """
    if files.kind(path) is None:
        return PendingEntry(PendingFate.ABSENT)
    encoded = read_whole(files, path)
    if not encoded.endswith(b"\n"):
        return PendingEntry(PendingFate.TORN, encoded)
    try:
        seq = decode_line(encoded[:-1], session_id, path).seq
    except BadSeal:
        return PendingEntry(PendingFate.TORN, encoded)
    if seq <= last_seq:
        return PendingEntry(PendingFate.STALE, encoded)
    if seq == last_seq + 1:
        return PendingEntry(PendingFate.REPLAYED, encoded)
    return PendingEntry(PendingFate.AHEAD, encoded, ((last_seq + 1, seq - 1),))
