"""Classification of the bytes of a write-ahead log (docs/recording.md): a pure function of it.

Each segment is read as far as its entries are valid. After a bad entry the scan searches for the
next valid one, and ``storage/gaps.py`` decides whether the bytes between them are damage or an end
that was never acknowledged. After a failed barrier a new segment begins, whose first entry names
the last durable number. If entries are missing at the end of the segment before it, those up to
that number are damage, and those above it were never acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from system.errors import NewerFormat
from system.recording.wal.format import (
    HEADER_BYTES,
    VERSION,
    ReadHeader,
    number_of,
    read_header,
)
from system.recording.wal.series import Series, find_seed, find_series, problem_at, read_series
from system.storage.gaps import Gap, find_cut
from system.storage.log_scan import BadSpan

_NO_HEADER: Final = "its header is damaged"
_MISSING: Final = "numbers are missing"


class ScannedSegment(NamedTuple):
    """The kept entries of a segment, and its bad bytes.

    There is a gap before each but the first of ``series``. ``torn_bytes`` at the end were never
    acknowledged. ``missing`` has the first and last number of each gap of entries that were
    durable once.
    """

    path: str
    series: tuple[Series, ...]
    bad: tuple[BadSpan, ...]
    torn_bytes: int
    missing: tuple[tuple[int, int], ...]
    first: int

    @property
    def last(self) -> int:
        """The last number in the segment, or the one before its first."""
        return self.series[-1].last if self.series else self.first - 1

    def count_after(self, number: int) -> int:
        """Return how many entries have a sequence number above ``number``."""
        return sum(max(0, each.last - max(each.seq - 1, number)) for each in self.series)


def scan_segments(contents: Mapping[str, bytes], settled: int = 0) -> tuple[ScannedSegment, ...]:
    """Classify the segments of a log, by path; return them in the order of their entries.

    Entries up to ``settled`` are in records, and do not count as missing. Raises ``NewerFormat``
    for a segment of a later version.
    """
    scanners: list[_Scanner] = []
    last = settled
    for path in sorted(contents, key=number_of):
        scanner = _Scanner(path, contents[path], last + 1)
        scanner.run()
        last = scanner.last
        scanners.append(scanner)
    scanners.sort(key=lambda scanner: scanner.first)
    found: list[ScannedSegment] = []
    proof, next_first = 0, None
    for scanner in reversed(scanners):
        segment = scanner.verdict(settled, proof, next_first)
        found.append(segment)
        if segment.series:
            # Numbers after this one, and before the segment, were never acknowledged.
            proof = segment.series[0].first_known_durable
        next_first = segment.first
    return tuple(reversed(found))


def durable_before(segments: Sequence[ScannedSegment]) -> int:
    """Return the last number below those of the segments that was durable, or 0 if unknown."""
    proofs = (each.series[0].first_known_durable for each in segments if each.series)
    return min(next(proofs, 0), segments[0].first - 1)


class _Scanner:
    def __init__(self, path: str, content: bytes, expected: int) -> None:
        self.path = path
        self.content = content
        # Unknown until the header, or the first entry, gives the first number.
        self.first = expected
        self.series: list[Series] = []
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
        for seed in self._possible_seeds(found):
            self._read(seed, None)
            if self.series:
                is_gap_known = bool(self.gaps) and self.gaps[0].position == 0
                if self.series[0].seq > self.first and not is_gap_known:
                    self.gaps.insert(0, Gap(0, HEADER_BYTES, _MISSING))
                self.first = min(self.first, self.series[0].seq)
                return
        self._open_bad(0, _NO_HEADER)

    def _possible_seeds(self, damaged: ReadHeader) -> Iterator[int]:
        """Yield the seeds that a damaged header may have had, the most probable first."""
        yield from damaged.seeds
        found = find_seed(self.content, HEADER_BYTES, self.first)
        if found is not None:
            yield found

    @property
    def last(self) -> int:
        """The last number that was read, or the one before the first."""
        return self._before(len(self.series))

    def _read(self, seed: int, last: int | None) -> None:
        content, offset = self.content, HEADER_BYTES
        self.gaps, self.bad_from = [], None
        while offset < len(content):
            series = self._series_at(offset, seed, last)
            if series is None:
                return
            if series.start > offset:
                self.gaps.append(Gap(len(self.series), offset, self.reason))
            elif last is not None and series.seq > last + 1:
                self.gaps.append(Gap(len(self.series), offset, _MISSING))
            self.series.append(series)
            offset, last = series.end, series.last

    def _series_at(self, offset: int, seed: int, last: int | None) -> Series | None:
        """Return the next entries at or after an offset; None if the rest of the segment is bad."""
        series = read_series(self.content, offset, seed)
        if series is not None and (last is None or series.seq > last):
            return series
        self._open_bad(offset, problem_at(self.content, offset, seed, last))
        found = find_series(self.content, offset, seed, last)
        if found is not None:
            self.bad_from = None
        return found

    def _open_bad(self, offset: int, reason: str) -> None:
        self.bad_from, self.reason = offset, reason

    def verdict(self, settled: int, later_proof: int, next_first: int | None) -> ScannedSegment:
        """Judge the gaps; ``next_first`` is the first number of the next segment, if any."""
        kept, cut, proof = find_cut(self.series, self.gaps, later_proof)
        gaps = [gap for gap in self.gaps if gap.position < kept]
        missing = [
            (self._before(gap.position) + 1, self.series[gap.position].seq - 1) for gap in gaps
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
        if self.series and not self.has_header:
            if self._was_durable(max(settled, later_proof), kept):
                bad.insert(0, BadSpan(0, HEADER_BYTES, _NO_HEADER, tail=False))
            else:
                torn_bytes += HEADER_BYTES
        missing = [(max(first, settled + 1), final) for first, final in missing]
        return ScannedSegment(
            self.path,
            tuple(self.series[:kept]),
            tuple(bad),
            torn_bytes,
            tuple((first, final) for first, final in missing if first <= final),
            self.first,
        )

    def _was_durable(self, later_proof: int, kept: int) -> bool:
        """Whether an entry, here or later, was written after a barrier of this segment."""
        durable = (each.known_durable for each in self.series[:kept])
        return max([later_proof, *durable]) >= self.first

    def _damaged_middles(self, gaps: Sequence[Gap]) -> Iterator[BadSpan]:
        for gap in gaps:
            end = self.series[gap.position].start
            if gap.start < end:
                yield BadSpan(gap.start, end, gap.reason, tail=False)

    def _before(self, position: int) -> int:
        return self.series[position - 1].last if position else self.first - 1
