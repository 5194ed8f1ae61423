"""Classification of the bytes of a write-ahead log (docs/recording.md): a pure function of it.

Each segment is read as far as its entries are valid. After a bad entry the next valid one is
searched, and ``storage/gaps.py`` decides whether the bytes between them are damage or an end that
was never acknowledged. After a failed barrier a new segment begins, whose first entry names the
last durable number. If entries are missing at the end of the segment before it, those up to that
number are damage, and those above it were never acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from system.errors import NewerFormat
from system.recording.executions.entry_type import EntryType
from system.recording.wal.format import (
    HEADER_BYTES,
    VERSION,
    RawEntry,
    find_entry,
    read_entry,
    read_header,
)
from system.storage.gaps import Gap, find_cut
from system.storage.log_scan import BadSpan

_NO_HEADER: Final = "its header is damaged"


class ScannedSegment(NamedTuple):
    """The kept entries of a segment, and its bad bytes.

    ``torn_bytes`` at its end were never acknowledged. ``missing`` has the first and last number
    of each gap of entries that were durable once.
    """

    path: str
    entries: tuple[RawEntry, ...]
    bad: tuple[BadSpan, ...]
    torn_bytes: int
    missing: tuple[tuple[int, int], ...]
    first: int

    @property
    def last(self) -> int:
        """The last number in the segment, or the one before its first."""
        return self.entries[-1].seq if self.entries else self.first - 1


def scan_segments(contents: Mapping[str, bytes], settled: int = 0) -> tuple[ScannedSegment, ...]:
    """Classify the segments of a log, by path; return them in the order of their entries.

    Entries up to ``settled`` are in records, and do not count as missing. Raises ``NewerFormat``
    for a segment of a later version.
    """
    scanners: list[_Scanner] = []
    last = settled
    for path in sorted(contents):
        scanner = _Scanner(path, contents[path], last + 1)
        scanner.run()
        last = scanner.entries[-1].seq if scanner.entries else scanner.first - 1
        scanners.append(scanner)
    scanners.sort(key=lambda scanner: scanner.first)
    found: list[ScannedSegment] = []
    proof, next_first = 0, None
    for scanner in reversed(scanners):
        segment = scanner.verdict(settled, proof, next_first)
        found.append(segment)
        if segment.entries:
            # Numbers after this one, and before the segment, were never acknowledged.
            proof = segment.entries[0].known_durable
        next_first = segment.first
    return tuple(reversed(found))


class _Scanner:
    def __init__(self, path: str, content: bytes, expected: int) -> None:
        self.path = path
        self.content = content
        # Unknown until the header, or the first entry, gives the first number.
        self.first = expected
        self.entries: list[RawEntry] = []
        self.gaps: list[Gap] = []
        self.bad_from: int | None = None
        self.reason = ""
        self.has_header = False

    def run(self) -> None:
        """Read all entries; ``bad_from`` is then the offset of a bad end, or None."""
        found = read_header(self.content)
        if found is None:
            self._open_bad(0, _NO_HEADER)
            return
        self.has_header = found.is_whole
        if found.is_whole:
            if found.header.version != VERSION:
                version = found.header.version
                reason = f"it is a segment of format {version}, known is {VERSION}"
                raise NewerFormat(self.path, reason)
            self.first = found.header.first
            self._read(found.seeds[0], self.first - 1)
            return
        for seed in found.seeds:
            self._read(seed, None)
            if self.entries:
                is_gap_known = bool(self.gaps) and self.gaps[0].position == 0
                if self.entries[0].seq > self.first and not is_gap_known:
                    self.gaps.insert(0, Gap(0, HEADER_BYTES, "numbers are missing"))
                self.first = min(self.first, self.entries[0].seq)
                return
        self._open_bad(0, _NO_HEADER)

    def _read(self, seed: int, last: int | None) -> None:
        content, offset = self.content, HEADER_BYTES
        self.gaps, self.bad_from = [], None
        continues = False
        while offset < len(content):
            entry = self._entry_at(offset, seed, last)
            if entry is None:
                return
            is_behind_bad_bytes = entry.start > offset
            if is_behind_bad_bytes or (last is not None and entry.seq > last + 1):
                reason = self.reason if is_behind_bad_bytes else "numbers are missing"
                self.gaps.append(Gap(len(self.entries), offset, reason))
                continues = False
            self.entries.append(entry._replace(is_continuation=True) if continues else entry)
            continues = entry.entry_type == EntryType.PART
            offset, last = entry.end, entry.seq

    def _entry_at(self, offset: int, seed: int, last: int | None) -> RawEntry | None:
        """Return the next entry at or after an offset; None if the rest of the segment is bad."""
        entry = read_entry(self.content, offset, seed)
        if isinstance(entry, RawEntry):
            if last is None or entry.seq > last:
                return entry
            entry = f"it has sequence={entry.seq} after {last}"
        self._open_bad(offset, entry)
        found = find_entry(self.content, offset, seed, last)
        if found is not None:
            self.bad_from = None
        return found

    def _open_bad(self, offset: int, reason: str) -> None:
        self.bad_from, self.reason = offset, reason

    def verdict(self, settled: int, later_proof: int, next_first: int | None) -> ScannedSegment:
        """Judge the gaps; ``next_first`` is the first number of the next segment, if any."""
        kept, cut, proof = find_cut(self.entries, self.gaps, later_proof)
        gaps = [gap for gap in self.gaps if gap.position < kept]
        missing = [
            (self._before(gap.position) + 1, self.entries[gap.position].seq - 1) for gap in gaps
        ]
        bad = list(self._damaged_middles(gaps))
        # Numbers from that of the next segment on are not in this one.
        here = later_proof if next_first is None else min(later_proof, next_first - 1)
        last, proof = self._before(kept), max(proof, here)
        end, reason = (self.bad_from, self.reason) if cut is None else (cut.start, cut.reason)
        size_bytes = len(self.content)
        end = size_bytes if end is None else end
        if proof > max(last, settled):
            missing.append((last + 1, proof))
            if end < size_bytes:
                bad.append(BadSpan(end, size_bytes, reason, tail=True))
                end = size_bytes
        torn_bytes = size_bytes - end
        if self.entries and not self.has_header:
            if self._was_durable(max(settled, later_proof), kept):
                bad.insert(0, BadSpan(0, HEADER_BYTES, _NO_HEADER, tail=False))
            else:
                torn_bytes += HEADER_BYTES
        missing = [(max(first, settled + 1), final) for first, final in missing]
        return ScannedSegment(
            self.path,
            tuple(self.entries[:kept]),
            tuple(bad),
            torn_bytes,
            tuple((first, final) for first, final in missing if first <= final),
            self.first,
        )

    def _was_durable(self, later_proof: int, kept: int) -> bool:
        """Whether an entry, here or later, was written after a barrier of this segment."""
        durable = (entry.known_durable for entry in self.entries[:kept])
        return max([later_proof, *durable]) >= self.first

    def _damaged_middles(self, gaps: Sequence[Gap]) -> Iterator[BadSpan]:
        for gap in gaps:
            end = self.entries[gap.position].start
            if gap.start < end:
                yield BadSpan(gap.start, end, gap.reason, tail=False)

    def _before(self, position: int) -> int:
        return self.entries[position - 1].seq if position else self.first - 1


def kept_entries(segments: Sequence[ScannedSegment]) -> Iterator[RawEntry]:
    """Yield the kept entries of all segments in order."""
    for segment in segments:
        yield from segment.entries
