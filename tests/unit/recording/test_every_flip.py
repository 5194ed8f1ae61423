"""Every damage to a write-ahead log of 200 entries: no wrong record, no silence, no traceback.

The classification of the bytes is judged for every single case. Recovery depends on the bytes
through that classification alone, so each distinct one is then recovered once, and all records
are compared with the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise, product
from typing import Any, Final, NamedTuple

import pytest

from oracles.recording.wal_reader import HEADER_BYTES, WalEntry, read_segment
from system.errors import NewerFormat
from system.ports import OpenMode
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.records.record import ExecutionRecord
from system.recording.stores.pack import pack_pieces, read_table
from system.recording.stores.record_file import decode_record, encode_record
from system.recording.wal.checkpoint import Checkpoint, read_checkpoint
from system.recording.wal.scan import ScannedSegment, scan_segments
from tests.unit.recording.recorded_log import ENTRIES, Machine, RecordedLog, recorded_log

SECTOR_BYTES: Final = 512

LOG = cache(recorded_log)


class Verdict(NamedTuple):
    """The result of a classification, without the text of its reasons."""

    kept: tuple[int, ...]
    bad: tuple[tuple[str, int, int], ...]
    torn_bytes: int
    missing: tuple[tuple[int, int], ...]


def verdict_of(segments: tuple[ScannedSegment, ...]) -> Verdict:
    return Verdict(
        tuple(
            number
            for segment in segments
            for series in segment.series
            for number in range(series.seq, series.last + 1)
        ),
        tuple((segment.path, span.start, span.end) for segment in segments for span in segment.bad),
        sum(segment.torn_bytes for segment in segments),
        tuple(gap for segment in segments for gap in segment.missing),
    )


class Window(NamedTuple):
    """A segment, and the beginning of the one behind it, which shows that it was durable."""

    path: str
    content: bytes
    entries: list[WalEntry]
    behind: dict[str, bytes]

    def scan(self, content: bytes) -> Verdict:
        found = scan_segments({self.path: content, **self.behind}, self.entries[0].sequence - 1)
        return verdict_of(found)


def windows(log: RecordedLog) -> Iterator[Window]:
    paths = list(log.files)
    for path, following in zip(paths, [*paths[1:], ""], strict=True):
        behind = {}
        if following:
            segment = read_segment(log.files[following])
            assert segment is not None
            behind[following] = log.files[following][: segment.entries[0].end]
        entries = [entry for name, entry in log.entries() if name == path]
        yield Window(path, log.files[path], entries, behind)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_flip_in_an_entry_is_reported_and_concerns_its_execution_only() -> None:
    log = LOG()
    for window in windows(log):
        for entry in window.entries:
            # A later entry of the segment shows that it was durable; the next one is not needed.
            scanned = window if entry is window.entries[-1] else window._replace(behind={})
            whole = set(scanned.scan(window.content).kept)
            verdicts: dict[Verdict, bytes] = {}
            for bit in range(entry.start * 8, entry.end * 8):
                content = flipped(window.content, bit)
                verdicts.setdefault(scanned.scan(content), content)
            number = entry.sequence
            for verdict, content in verdicts.items():
                assert set(verdict.kept) == whole - {number}
                files = {**log.files, window.path: content}
                if number < ENTRIES:
                    assert verdict.missing == ((number, number),)
                    assert verdict.bad == ((window.path, entry.start, entry.end),)
                    report = log.check(files, excused=[log.steps[number - 1].execution_id]).report
                    assert [each.path for each in report.damaged] == [window.path]
                else:
                    assert verdict.torn_bytes == entry.end - entry.start
                    log.check(files, ENTRIES - 1)


def test_every_flip_in_a_header_is_reported_and_loses_no_entry() -> None:
    log = LOG()
    for window in windows(log):
        verdicts: dict[Verdict, bytes] = {}
        for bit in range(HEADER_BYTES * 8):
            content = flipped(window.content, bit)
            verdicts.setdefault(window.scan(content), content)
        for verdict, content in verdicts.items():
            assert verdict.kept == window.scan(window.content).kept
            assert verdict.bad == ((window.path, 0, HEADER_BYTES),)
            assert log.check({**log.files, window.path: content}).report.damaged


def test_every_prefix_of_the_log_is_a_valid_log() -> None:
    log = LOG()
    files: dict[str, bytes] = {}
    for path, content in log.files.items():
        entries = [entry for name, entry in log.entries() if name == path]
        before = entries[0].sequence - 1
        for size in range(len(content)):
            cut = content[:size]
            verdict = verdict_of(scan_segments({path: cut}, before))
            whole = [entry for entry in entries if entry.end <= size]
            ends = [HEADER_BYTES, *(entry.end for entry in whole)]
            assert verdict.kept == tuple(entry.sequence for entry in whole)
            assert not verdict.bad
            assert verdict.torn_bytes == (size if size < HEADER_BYTES else size - ends[-1])
            # Each number of whole entries is recovered without the next one, and with most of it.
            if size in ends or size + 1 in ends or not size:
                report = log.check({**files, path: cut}, before + len(whole)).report
                assert report.lost_nothing
        files[path] = content


def hit_entries(log: RecordedLog, path: str, damaged: bytes) -> list[WalEntry]:
    """Return the entries of a segment that damage concerns.

    Without the header, whose crc is part of all others, two whole entries that follow one another
    are needed to verify any.
    """
    content = log.files[path]
    entries = [entry for name, entry in log.entries() if name == path]
    is_hit = [damaged[each.start : each.end] != content[each.start : each.end] for each in entries]
    has_header = damaged[:HEADER_BYTES] == content[:HEADER_BYTES]
    if has_header or any(not (one or next_one) for one, next_one in pairwise(is_hit)):
        return [each for each, hit in zip(entries, is_hit, strict=True) if hit]
    return entries


@pytest.mark.parametrize("filling", [b"\0", b"\xff"], ids=["zeros", "ones"])
def test_every_lost_sector_is_reported_and_concerns_its_executions_only(filling: bytes) -> None:
    log = LOG()
    for path, content in log.files.items():
        for start in range(0, len(content), SECTOR_BYTES):
            end = min(start + SECTOR_BYTES, len(content))
            damaged = content[:start] + filling * (end - start) + content[end:]
            hit = [entry.sequence for entry in hit_entries(log, path, damaged)]
            files = {**log.files, path: damaged}
            if ENTRIES in hit:
                log.check(files, hit[0] - 1)
                continue
            excused = {log.steps[number - 1].execution_id for number in hit}
            report = log.check(files, excused=excused).report
            assert report.damaged
            assert report.missing == ([(hit[0], hit[-1])] if hit else [])


Sector = tuple[str, int]
"""A path, and the offset of a whole sector in it."""


def sectors(log: RecordedLog, path: str) -> list[Sector]:
    last = len(log.files[path]) - SECTOR_BYTES
    return [(path, start) for start in range(0, last + 1, SECTOR_BYTES)]


def swapped(log: RecordedLog, one: Sector, other: Sector) -> dict[str, bytes]:
    """Return the files that a swap of two sectors changes."""
    changed = {path: bytearray(log.files[path]) for path, _ in (one, other)}
    for (path, start), (source, offset) in ((one, other), (other, one)):
        content = log.files[source][offset : offset + SECTOR_BYTES]
        changed[path][start : start + SECTOR_BYTES] = content
    return {path: bytes(content) for path, content in changed.items()}


def swaps(log: RecordedLog) -> Iterator[tuple[Sector, Sector]]:
    """Yield all swaps in the first, second and last segment, and some across two segments."""
    first, second, *_, third, last = log.files
    for path in (first, second, last):
        yield from combinations(sectors(log, path), 2)
    for pair in ((first, second), (second, third), (third, last), (first, last)):
        yield from product(*(sectors(log, path) for path in pair))


def test_every_swap_of_two_sectors_is_reported() -> None:
    log = LOG()
    for one, other in swaps(log):
        changed = swapped(log, one, other)
        hit = [each for item in changed.items() for each in hit_entries(log, *item)]
        if one[0] != other[0] and 0 in {one[1], other[1]}:
            # A segment that begins with a sector of another one is read with the seed of that one.
            hit = [entry for path, entry in log.entries() if path in changed]
        excused = {log.steps[entry.sequence - 1].execution_id for entry in hit}
        assert log.check({**log.files, **changed}, excused=excused).report.damaged


def test_every_stale_tail_of_an_earlier_lifetime_is_refused() -> None:
    log, earlier = LOG(), recorded_log(salt=1)
    for path, content in log.files.items():
        entries = [entry for name, entry in log.entries() if name == path]
        stale = earlier.files[path]
        assert stale[:14] == content[:14]
        assert stale[HEADER_BYTES:] != content[HEADER_BYTES:]
        for entry in entries:
            tail = stale[entry.end :]
            found = scan_segments({path: content[: entry.end] + tail}, entries[0].sequence - 1)
            verdict = verdict_of(found)
            assert verdict.kept == tuple(range(entries[0].sequence, entry.sequence + 1))
            assert verdict.torn_bytes == len(tail)


def test_a_lost_segment_is_reported() -> None:
    log = LOG()
    for lost in list(log.files)[:-1]:
        hit = {
            log.steps[entry.sequence - 1].execution_id
            for name, entry in log.entries()
            if name == lost
        }
        files = {path: content for path, content in log.files.items() if path != lost}
        report = log.check(files, excused=hit).report
        assert report.missing or report.findings


def checkpoint_of_log() -> bytes:
    """Return the checkpoint that a recovery of the log writes."""
    log, machine = LOG(), Machine(LOG().files)
    assert machine.recover().log.report.entries == len(log.steps)
    return machine.host.files.read("checkpoint")[0]


def test_every_flip_and_prefix_of_a_checkpoint_is_found() -> None:
    content = checkpoint_of_log()
    right = read_one_checkpoint(content)
    assert right.sequence == ENTRIES
    damaged = [flipped(content, bit) for bit in range(len(content) * 8)]
    damaged += [content[:size] for size in range(1, len(content))]
    for each in damaged:
        try:
            found = read_one_checkpoint(each)
        except NewerFormat:
            raise AssertionError(f"damage looks like a later version: {each!r}") from None
        assert found.problem or found == right
        assert found.problem == "" or found.sequence == 0


def read_one_checkpoint(content: bytes) -> Checkpoint:
    machine = Machine({"checkpoint": content})
    return read_checkpoint(machine.host.files, "checkpoint")


class OneFile:
    """A file system of one file, to be read; quick to make."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def open(self, _path: str, _mode: OpenMode) -> OneFile:
        return self

    def read(self, _path: str) -> tuple[bytes, int]:
        return self.content, len(self.content)

    def size(self) -> int:
        return len(self.content)

    def pread(self, size_bytes: int, offset: int) -> bytes:
        return self.content[offset : offset + size_bytes]

    def close(self) -> None:
        """Do nothing: there is no descriptor."""


def pack() -> tuple[bytes, dict[str, ExecutionRecord]]:
    """Return a pack of two executions, and their records."""
    machine = Machine({path: LOG().files[path] for path in list(LOG().files)[:4]})
    recovered = machine.recover().log.executions.all()
    executions = [recovered[key] for key in list(recovered)[:2]]
    content = b"".join(pack_pieces([each.view() for each in executions]))
    return content, {each.execution_id: each.record() for each in executions}


def records_in(content: bytes) -> tuple[dict[str, ExecutionRecord], bool]:
    """Return the records in a pack, and whether damage of it is reported."""
    files: Any = OneFile(content)
    table, found = read_table(files, "1.pack"), dict[str, ExecutionRecord]()
    is_reported = bool(table.problem)
    for member in table.members():
        try:
            found[member.execution_id] = member.record(files)
        except RecordCorruptedError:
            is_reported = True
    return found, is_reported


def test_every_flip_of_a_pack_is_reported_and_concerns_one_execution_at_most() -> None:
    content, right = pack()
    assert records_in(content) == (right, False)
    for bit in range(len(content) * 8):
        found, is_reported = records_in(flipped(content, bit))
        assert is_reported
        assert len(found) >= len(right) - 1
        assert all(right[key] == record for key, record in found.items())


def test_every_prefix_of_a_pack_is_reported_and_keeps_the_whole_executions() -> None:
    content, right = pack()
    files: Any = OneFile(content)
    ends = sorted(each.start + each.size_bytes for each in read_table(files, "").members())
    for size in range(len(content)):
        found, is_reported = records_in(content[:size])
        assert is_reported
        assert len(found) == sum(end <= size for end in ends)
        assert all(right[key] == record for key, record in found.items())


def test_every_flip_and_prefix_of_a_record_is_found_or_reads_back_equal() -> None:
    content, path = encode_record(list(pack()[1].values())[1]), "record.json"
    right = decode_record(content, path)
    damaged = [flipped(content, bit) for bit in range(len(content) * 8)]
    damaged += [content[:size] for size in range(len(content))]
    for each in damaged:
        try:
            found = decode_record(each, path)
        except (RecordCorruptedError, ForeignRecordFile, NewerFormat):
            continue
        assert found == right
        assert found.encoded() == right.encoded()
