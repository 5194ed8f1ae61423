"""Which bytes of a log are lines, and what the others can be. Pure: bytes in, verdict out.

A line is good when its seal holds, it belongs to this session, and its ``seq`` is above
the last one. A good line stays good whatever stands before or behind it, and even when
a line end is damaged or missing.

What is bad with a good line behind it is damage: one append is in flight at a time, so
that bad line had been acknowledged. At the end of the file it is harder. A crash leaves
of an unacknowledged append any mixture of its bytes, zeros and stale bytes with line ends
among them, up to the whole length of the line; damage can make an acknowledged last line
look the same, and no byte on the disk tells the two apart. Hence the rule:

torn
    text without a line end that begins like a line, or less than the shortest line.
    Every acknowledged line ends with a line end, and damage that leaves only such text
    would have had to hit exactly that byte; then the seal holds, and the line is good.
damaged tail
    everything else. It may have been acknowledged, so it is kept aside and reported.

Neither stops recovery, and neither is dropped without being told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from system.errors import BadSeal
from system.storage.codec import is_text
from system.storage.line import FIRST_BYTES, SHORTEST_BYTES, decode_line


@dataclass(frozen=True, slots=True)
class BadSpan:
    """The bytes from ``start`` to ``end`` are no line; ``tail``: no good line follows."""

    start: int
    end: int
    reason: str
    tail: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """Where the good lines are, what is between them, and what is behind the last.

    ``good`` are the spans of the lines in order, without their line ends. ``torn_bytes``
    begin behind the last good line.
    """

    good: tuple[tuple[int, int], ...]
    bad: tuple[BadSpan, ...]
    torn_bytes: int
    last_seq: int
    missing: tuple[tuple[int, int], ...]

    @property
    def has_damaged_middle(self) -> bool:
        """Whether good lines stand behind bad bytes."""
        return any(not bad.tail for bad in self.bad)

    def with_tail_explained(self) -> Scan:
        """Return this scan, with all that is behind the last good line counted as torn."""
        middle = tuple(bad for bad in self.bad if not bad.tail)
        tail_bytes = sum(bad.end - bad.start for bad in self.bad if bad.tail)
        return replace(self, bad=middle, torn_bytes=self.torn_bytes + tail_bytes)


class _Scanner:
    def __init__(self, content: bytes, session_id: str, path: str) -> None:
        self.content = content
        self.session_id = session_id
        self.path = path
        self.good: list[tuple[int, int]] = []
        self.bad: list[BadSpan] = []
        self.missing: list[tuple[int, int]] = []
        self.last_seq = 0
        self.bad_from: int | None = None
        self.reason = ""

    def take(self, start: int, end: int) -> None:
        """Take what stands before a line end: a line, or several with damage between them."""
        while not self._try_line(start, end):
            following = self.content.find(FIRST_BYTES, start + 1, end)
            if following < 0:
                return
            if self._try_line(start, following - 1):
                self._open_bad(following - 1, "a line end is damaged")
            start = following

    def finish(self, start: int) -> int:
        """Judge what follows the last line end; return how many bytes at the end are torn."""
        end = len(self.content)
        if start < end and not self._try_line(start, end):
            self.take(start, end - 1)
        if self.bad_from is None:
            return 0
        if _is_torn(self.content[self.bad_from :]):
            return end - self.bad_from
        self._close_bad(end, tail=True)
        return 0

    def _try_line(self, start: int, end: int) -> bool:
        """Take the bytes as the next line if they are one; else note why they are not."""
        try:
            line = decode_line(self.content[start:end], self.session_id, self.path)
            if line.seq <= self.last_seq:
                raise BadSeal(f"it has seq={line.seq} after {self.last_seq}")
        except BadSeal as bad:
            self._open_bad(start, str(bad))
            return False
        self._close_bad(start, tail=False)
        if line.seq > self.last_seq + 1:
            self.missing.append((self.last_seq + 1, line.seq - 1))
        self.last_seq = line.seq
        self.good.append((start, end))
        return True

    def _open_bad(self, start: int, reason: str) -> None:
        if self.bad_from is None:
            self.bad_from, self.reason = start, reason

    def _close_bad(self, end: int, *, tail: bool) -> None:
        if self.bad_from is not None and self.bad_from < end:
            self.bad.append(BadSpan(self.bad_from, end, self.reason, tail))
        self.bad_from = None


def _is_torn(tail: bytes) -> bool:
    return len(tail) < SHORTEST_BYTES or (tail.startswith(FIRST_BYTES) and is_text(tail))


def scan(content: bytes, session_id: str, path: str) -> Scan:
    """Look at every byte of a log; ``NewerFormat`` (it names ``path``) is all it raises."""
    scanner = _Scanner(content, session_id, path)
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        scanner.take(start, end)
        start = end + 1
    torn_bytes = scanner.finish(start)
    return Scan(
        tuple(scanner.good),
        tuple(scanner.bad),
        torn_bytes,
        scanner.last_seq,
        tuple(scanner.missing),
    )
