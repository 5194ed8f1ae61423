"""Classification of the bytes of a log: lines, damage, torn end. A pure function of the bytes.

A line is good when its seal holds, it belongs to this session, and its ``seq`` is above that
of the good line before it. Bad bytes before it, or a damaged or missing line end, do not
change that. A *gap* before a good line is a run of bad bytes, or a ``seq`` that is not the
next. There are two kinds.

damaged middle
    The ``known_durable`` of some later good line shows that the lines in the gap were
    durable. So the gap was acknowledged, and the lines behind it are kept.
partly written group
    No later line shows that. Lines with one common barrier reach the platter in any order,
    so a power cut may keep a later one and lose an earlier one. The log ends at the gap.

At the end of the file, a crash leaves any mixture of the bytes of unacknowledged lines, zeros
and stale bytes, up to their whole length. Damage can make acknowledged last lines look the
same, and no byte on the disk distinguishes the two. Hence the rule:

torn
    Text without a line end that begins like a line, or fewer bytes than the shortest line.
    An acknowledged line has a line end. Damage that leaves only such text must have hit
    exactly that byte; then the seal holds, and the line is good.
damaged tail
    Everything else. It may have been acknowledged, so it is put in quarantine and reported.

Neither stops recovery, and both are reported.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from system.errors import BadSeal
from system.storage.codec import is_text
from system.storage.gaps import Gap, find_cut
from system.storage.line import FIRST_BYTES, SHORTEST_BYTES, Line, decode_line

BARRIERS_TO_TRUST: Final = 2
"""ext4 with ``data=journal`` reports a failed fsync only at the next one."""


class BadSpan(NamedTuple):
    """The bytes from ``start`` to ``end`` are not kept; ``tail`` if no kept line follows."""

    start: int
    end: int
    reason: str
    tail: bool


class Scan(NamedTuple):
    """The kept lines of a log, and the bytes between and behind them.

    ``good`` are the spans of ``lines`` without their line ends. ``torn_bytes`` follow the
    last of them. ``unproven`` is the index of the first line that may not be durable
    together with its line end; the last line always is one of them.
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
        """Whether good lines follow bad bytes."""
        return any(not bad.tail for bad in self.bad)

    def with_tail_explained(self) -> Scan:
        """Return this scan with all bytes behind the last good line counted as torn."""
        middle = tuple(bad for bad in self.bad if not bad.tail)
        tail_bytes = sum(bad.end - bad.start for bad in self.bad if bad.tail)
        return self._replace(bad=middle, torn_bytes=self.torn_bytes + tail_bytes)


class _Scanner:
    def __init__(self, content: bytes, session_id: str, path: str, last_seq: int) -> None:
        self.content = content
        self.session_id = session_id
        self.path = path
        self.lines: list[Line] = []
        self.good: list[tuple[int, int]] = []
        self.gaps: list[Gap] = []
        self.seq_before = last_seq
        self.last_seq = last_seq
        self.bad_from: int | None = None
        self.reason = ""

    def run(self) -> None:
        """Classify every byte; ``bad_from`` is then the offset of a bad end, or None."""
        content, start = self.content, 0
        while (end := content.find(b"\n", start)) >= 0:
            if not self._try_line(start, end):
                self._take_lines_within(start, end)
            start = end + 1
        end = len(content)
        if start < end and not self._try_line(start, end) and not self._try_line(start, end - 1):
            self._take_lines_within(start, end - 1)

    def _take_lines_within(self, start: int, end: int) -> None:
        """Take the lines inside bytes that are no line as a whole."""
        while (following := self.content.find(FIRST_BYTES, start + 1, end)) >= 0:
            if self._try_line(start, following - 1):
                self._open_bad(following - 1, "a line end is damaged")
            start = following
            if self._try_line(start, end):
                return

    def _try_line(self, start: int, end: int) -> bool:
        """Take the bytes as the next line, or record the reason why they are not one."""
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
            self.gaps.append(Gap(len(self.lines), self.bad_from, self.reason))
        elif seq > expected:
            self.gaps.append(Gap(len(self.lines), start, f"seq={expected} is missing"))
        self.bad_from = None
        self.last_seq = seq
        self.lines.append(line)
        self.good.append((start, end))
        return True

    def _open_bad(self, start: int, reason: str) -> None:
        if self.bad_from is None:
            self.bad_from, self.reason = start, reason


class _Judge:
    """Classifies each gap and decides which lines are kept."""

    def __init__(self, scanner: _Scanner) -> None:
        self.scanner = scanner
        self.bad: list[BadSpan] = []
        self.missing: list[tuple[int, int]] = []
        self.torn_bytes = 0

    def verdict(self) -> Scan:
        scanner = self.scanner
        kept, cut, proof = find_cut(scanner.lines, scanner.gaps)
        for gap in scanner.gaps:
            if gap.position < kept:
                self._damaged_middle(gap)
        if cut is None:
            self._end_of_file()
        else:
            self._cut_at(cut, proof)
        return Scan(
            tuple(scanner.lines[:kept]),
            tuple(scanner.good[:kept]),
            tuple(self.bad),
            self.torn_bytes,
            self._seq_before(kept),
            tuple(self.missing),
            min(self._first_unproven(), max(0, kept - 1)),
        )

    def _damaged_middle(self, gap: Gap) -> None:
        end = self.scanner.good[gap.position][0]
        if gap.start < end:
            self.bad.append(BadSpan(gap.start, end, gap.reason, tail=False))
        self._add_missing(gap, self.scanner.lines[gap.position].seq - 1)

    def _cut_at(self, gap: Gap, proof: int) -> None:
        """Drop everything after the gap; lines of the gap that were durable are missing."""
        end = len(self.scanner.content)
        self.bad.append(BadSpan(gap.start, end, gap.reason, tail=True))
        self._add_missing(gap, proof)

    def _end_of_file(self) -> None:
        content, start = self.scanner.content, self.scanner.bad_from
        if start is None:
            return
        if _is_torn(content[start:]):
            self.torn_bytes = len(content) - start
        else:
            self.bad.append(BadSpan(start, len(content), self.scanner.reason, tail=True))

    def _add_missing(self, gap: Gap, last: int) -> None:
        first = self._seq_before(gap.position) + 1
        if first <= last:
            self.missing.append((first, last))

    def _seq_before(self, position: int) -> int:
        return self.scanner.lines[position - 1].seq if position else self.scanner.seq_before

    def _first_unproven(self) -> int:
        """Return the index after all lines that two barriers in a row have covered."""
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


def scan(content: bytes, session_id: str, path: str, last_seq: int = 0) -> Scan:
    """Classify every byte of a log; raises only ``NewerFormat``, which names ``path``.

    ``last_seq`` is the number of the line before the first one.
    """
    scanner = _Scanner(content, session_id, path, last_seq)
    scanner.run()
    return _Judge(scanner).verdict()
