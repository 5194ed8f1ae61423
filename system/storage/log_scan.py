"""Which bytes of a log are lines, and what the others can be. Pure: bytes in, verdict out.

A line is good when its seal holds, it belongs to this session, and its ``seq`` is above
the last one. A good line stays good whatever stands before it, and even when a line end is
damaged or missing. Before a good line there may be a *gap*: bad bytes, or a ``seq`` that is
not the next. It is one of two things.

damage in the middle
    Some good line behind the gap says, with its ``known_durable``, that all before the gap's
    end had been durable. So the gap was acknowledged; the lines behind it stay.
the remains of a group
    No line says so. Lines that wait for one barrier reach the platter in any order, and a
    power cut may keep a later one and lose an earlier one. Then a line would stand there
    without what was written before it, so it ends with the gap: all of it is the end.

At the end of the file it is harder. A crash leaves of lines that were never acknowledged
any mixture of their bytes, zeros and stale bytes with line ends among them, up to their
whole length; damage can make acknowledged last lines look the same, and no byte on the
disk tells the two apart. Hence the rule:

torn
    text without a line end that begins like a line, or less than the shortest line.
    Every acknowledged line ends with a line end, and damage that leaves only such text
    would have had to hit exactly that byte; then the seal holds, and the line is good.
damaged tail
    everything else. It may have been acknowledged, so it is kept aside and reported.

Neither stops recovery, and neither is dropped without being told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from system.errors import BadSeal
from system.storage.codec import is_text
from system.storage.line import FIRST_BYTES, SHORTEST_BYTES, Line, decode_line

BARRIERS_TO_TRUST: Final = 2
"""A journaling ext4 tells of a failed fsync only at the next one."""


class BadSpan(NamedTuple):
    """The bytes from ``start`` to ``end`` are not kept; ``tail``: no line follows that is."""

    start: int
    end: int
    reason: str
    tail: bool


class Scan(NamedTuple):
    """The lines that are kept, where they are, what is between them, and behind the last.

    ``good`` are the spans of ``lines``, without their line ends. ``torn_bytes`` begin behind
    the last of them. ``unproven`` is the position, in both, of the first line that may not
    be durable with its line end.
    """

    lines: tuple[Line, ...]
    good: tuple[tuple[int, int], ...]
    bad: tuple[BadSpan, ...]
    torn_bytes: int
    last_seq: int
    missing: tuple[tuple[int, int], ...]
    unproven: int

    @property
    def has_damaged_middle(self) -> bool:
        """Whether good lines stand behind bad bytes."""
        return any(not bad.tail for bad in self.bad)

    def with_tail_explained(self) -> Scan:
        """Return this scan, with all that is behind the last good line counted as torn."""
        middle = tuple(bad for bad in self.bad if not bad.tail)
        tail_bytes = sum(bad.end - bad.start for bad in self.bad if bad.tail)
        return self._replace(bad=middle, torn_bytes=self.torn_bytes + tail_bytes)


class _Gap(NamedTuple):
    """What stands from the offset ``start`` to the good line at ``position``."""

    position: int
    start: int
    reason: str


class _Scanner:
    def __init__(self, content: bytes, session_id: str, path: str) -> None:
        self.content = content
        self.session_id = session_id
        self.path = path
        self.lines: list[Line] = []
        self.good: list[tuple[int, int]] = []
        self.gaps: list[_Gap] = []
        self.last_seq = 0
        self.bad_from: int | None = None
        self.reason = ""

    def run(self) -> None:
        """Look at every byte; ``bad_from`` is then where the bad end begins, if there is one."""
        content, start = self.content, 0
        while (end := content.find(b"\n", start)) >= 0:
            if not self._try_line(start, end):
                self._take_what_is_left(start, end)
            start = end + 1
        end = len(content)
        if start < end and not self._try_line(start, end) and not self._try_line(start, end - 1):
            self._take_what_is_left(start, end - 1)

    def _take_what_is_left(self, start: int, end: int) -> None:
        """Take the lines in what is none as a whole: several, with damage between them."""
        while (following := self.content.find(FIRST_BYTES, start + 1, end)) >= 0:
            if self._try_line(start, following - 1):
                self._open_bad(following - 1, "a line end is damaged")
            start = following
            if self._try_line(start, end):
                return

    def _try_line(self, start: int, end: int) -> bool:
        """Take the bytes as the next line if they are one; else note why they are not."""
        try:
            line = decode_line(self.content[start:end], self.session_id, self.path)
        except BadSeal as bad:
            self._open_bad(start, str(bad))
            return False
        seq, expected = line.seq, self.last_seq + 1
        if seq < expected:
            self._open_bad(start, f"it has seq={seq} after {self.last_seq}")
            return False
        if self.bad_from is not None and self.bad_from < start:
            self.gaps.append(_Gap(len(self.lines), self.bad_from, self.reason))
        elif seq > expected:
            self.gaps.append(_Gap(len(self.lines), start, f"seq={expected} is missing"))
        self.bad_from = None
        self.last_seq = seq
        self.lines.append(line)
        self.good.append((start, end))
        return True

    def _open_bad(self, start: int, reason: str) -> None:
        if self.bad_from is None:
            self.bad_from, self.reason = start, reason


class _Judge:
    """Says of each gap what it is, and of the lines which of them stay."""

    def __init__(self, scanner: _Scanner) -> None:
        self.scanner = scanner
        self.bad: list[BadSpan] = []
        self.missing: list[tuple[int, int]] = []
        self.torn_bytes = 0

    def verdict(self) -> Scan:
        scanner = self.scanner
        kept, cut_proof = len(scanner.lines), 0
        cut: _Gap | None = None
        for gap, proof in self._proofs():
            if proof < scanner.lines[gap.position].seq - 1:
                cut, cut_proof, kept = gap, proof, gap.position
        for gap in scanner.gaps:
            if gap.position < kept:
                self._damaged_middle(gap)
        if cut is None:
            self._end_of_file()
        else:
            self._remains(cut, cut_proof)
        return Scan(
            tuple(scanner.lines[:kept]),
            tuple(scanner.good[:kept]),
            tuple(self.bad),
            self.torn_bytes,
            self._seq_before(kept),
            tuple(self.missing),
            self._first_unproven(),
        )

    def _proofs(self) -> Iterator[tuple[_Gap, int]]:
        """Yield each gap, the last first, and the last ``seq`` that lines behind it prove."""
        lines = self.scanner.lines
        end, proof = len(lines), 0
        for gap in reversed(self.scanner.gaps):
            proof = max(proof, *(line.known_durable for line in lines[gap.position : end]))
            end = gap.position
            yield gap, proof

    def _damaged_middle(self, gap: _Gap) -> None:
        end = self.scanner.good[gap.position][0]
        if gap.start < end:
            self.bad.append(BadSpan(gap.start, end, gap.reason, tail=False))
        self._note_missing(gap, self.scanner.lines[gap.position].seq - 1)

    def _remains(self, gap: _Gap, proof: int) -> None:
        """Give up all that follows; what was proven durable of the gap itself is missing."""
        end = len(self.scanner.content)
        self.bad.append(BadSpan(gap.start, end, gap.reason, tail=True))
        self._note_missing(gap, proof)

    def _end_of_file(self) -> None:
        content, start = self.scanner.content, self.scanner.bad_from
        if start is None:
            return
        if _is_torn(content[start:]):
            self.torn_bytes = len(content) - start
        else:
            self.bad.append(BadSpan(start, len(content), self.scanner.reason, tail=True))

    def _note_missing(self, gap: _Gap, last: int) -> None:
        first = self._seq_before(gap.position) + 1
        if first <= last:
            self.missing.append((first, last))

    def _seq_before(self, position: int) -> int:
        return self.scanner.lines[position - 1].seq if position else 0

    def _first_unproven(self) -> int:
        """Return the position behind all lines that two barriers in a row have covered."""
        lines = self.scanner.lines
        position = len(lines)
        for _ in range(BARRIERS_TO_TRUST):
            if not position:
                break
            durable = lines[position - 1].known_durable
            while position and lines[position - 1].seq > durable:
                position -= 1
        return position


def _is_torn(tail: bytes) -> bool:
    return len(tail) < SHORTEST_BYTES or (tail.startswith(FIRST_BYTES) and is_text(tail))


def scan(content: bytes, session_id: str, path: str) -> Scan:
    """Look at every byte of a log; ``NewerFormat`` (it names ``path``) is all it raises."""
    scanner = _Scanner(content, session_id, path)
    scanner.run()
    return _Judge(scanner).verdict()
