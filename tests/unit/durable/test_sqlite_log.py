"""Damage in the write-ahead log of SQLite: logs that SQLite has written, changed, then judged."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import apsw
import pytest

from system.durable.sqlite_log import (
    FRAME_HEADER_BYTES,
    HEADER_BYTES,
    damaged_at,
    is_ignored,
)
from system.storage.database_pragmas import DATABASE_PRAGMAS

PAGE_BYTES: Final = 512
FRAME_BYTES: Final = FRAME_HEADER_BYTES + PAGE_BYTES
SECTOR_BYTES: Final = 512
COUNT: Final = range(12, 16)
"""The place of the count of checkpoints in the header."""


class Files:
    """A database and its log in a directory; ``rows`` are in the database that was left there."""

    def __init__(self, directory: Path, page_bytes: int = PAGE_BYTES) -> None:
        self.path = directory / "db"
        self.log_path = directory / "db-wal"
        self._page_bytes = page_bytes
        self.connection = self._opened()
        self.connection.execute("CREATE TABLE t (number, body)")

    def _opened(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path))
        for pragma in (f"PRAGMA page_size={self._page_bytes}", *DATABASE_PRAGMAS):
            connection.execute(pragma).fetchall()
        return connection

    def insert(self, number: int, size_bytes: int = 10) -> bytes:
        """Commit a row, and return the log."""
        self.connection.execute("INSERT INTO t VALUES (?, ?)", (number, bytes(size_bytes)))
        return self.log

    def spill(self, rows: int) -> bytes:
        """Write frames of a transaction, roll it back, and return the log."""
        self.connection.execute("PRAGMA cache_size=2; PRAGMA cache_spill=1; BEGIN")
        for number in range(rows):
            self.insert(number, 2 * PAGE_BYTES)
        self.connection.execute("ROLLBACK")
        return self.log

    def restart(self) -> None:
        """Checkpoint; the next transaction starts the log from its beginning."""
        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)

    @property
    def log(self) -> bytes:
        return self.log_path.read_bytes()

    def rows_with(self, log: bytes, directory: Path) -> int:
        """Return the number of rows that SQLite finds if a copy has this log."""
        copy = directory / f"copy-{len(list(directory.iterdir()))}"
        copy.write_bytes(self.path.read_bytes())
        copy.with_name(f"{copy.name}-wal").write_bytes(log)
        connection = apsw.Connection(str(copy))
        connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        (found,) = connection.execute("SELECT count(*) FROM t").fetchall()
        connection.close(True)
        return int(str(found[0]))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def flipped(log: bytes, bit: int) -> bytes:
    changed = bytearray(log)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def ends(log: bytes, page_bytes: int = PAGE_BYTES) -> list[int]:
    """Return the offsets behind the transactions of the generation of the header."""
    found = []
    for start in range(HEADER_BYTES, len(log), FRAME_HEADER_BYTES + page_bytes):
        commits = log[start + 4 : start + 8] != bytes(4)
        if commits and log[start + 8 : start + 16] == log[16:24]:
            found.append(start + FRAME_HEADER_BYTES + page_bytes)
    return found


def bits_of_frames(start: int, end: int, page_bytes: int = PAGE_BYTES) -> Iterator[int]:
    """Yield each bit of the headers of frames, and every 37th bit of their pages."""
    for frame in range(start, end, FRAME_HEADER_BYTES + page_bytes):
        page = frame + FRAME_HEADER_BYTES
        yield from range(frame * 8, page * 8)
        yield from range(page * 8, (page + page_bytes) * 8, 37 * page_bytes // PAGE_BYTES)


def written(files: Files, sizes: tuple[int, ...] = (10, 1_500, 10, 900, 10)) -> bytes:
    for number, size_bytes in enumerate(sizes):
        files.insert(number, size_bytes)
    return files.log


@cache
def checksum(content: bytes, order: str, before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Compute a checksum as the page of the file format describes it."""
    words = array("I", content)
    if order != sys.byteorder:
        words.byteswap()
    s0, s1 = before
    for place in range(0, len(words), 2):
        s0 = (s0 + words[place] + s1) % 2**32
        s1 = (s1 + words[place + 1] + s0) % 2**32
    return s0, s1


def in_order(log: bytes, order: str) -> bytes:
    """Return a log of ``PAGE_BYTES`` with the checksums that a machine of a byte order writes."""

    def stored(pair: tuple[int, int]) -> bytes:
        return b"".join(each.to_bytes(4, "big") for each in pair)

    head = log[:3] + (b"\x83" if order == "big" else b"\x82") + log[4:24]
    sums = checksum(head, order)
    parts = [head, stored(sums)]
    for start in range(HEADER_BYTES, len(log), FRAME_BYTES):
        page = log[start + FRAME_HEADER_BYTES : start + FRAME_BYTES]
        sums = checksum(log[start : start + 8] + page, order, sums)
        parts += [log[start : start + 16], stored(sums), page]
    return b"".join(parts)


# -- damage ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["little", "big"])
def test_each_flipped_bit_before_the_last_transaction_is_found(
    files: Files, order: str, tmp_path: Path
) -> None:
    log = in_order(written(files), order)
    assert files.rows_with(log, tmp_path) == 5
    assert damaged_at(log) is None
    *_, last, _ = ends(log)
    missed = [
        bit
        for bit in bits_of_frames(HEADER_BYTES, last)
        if damaged_at(flipped(log, bit)) != bit // 8 - (bit // 8 - HEADER_BYTES) % FRAME_BYTES
    ]
    assert missed == []


@pytest.mark.parametrize("page_bytes", [1024, 4096, 65_536])
def test_each_flipped_bit_of_another_page_size_is_found(tmp_path: Path, page_bytes: int) -> None:
    files = Files(tmp_path, page_bytes)
    log = written(files)
    assert damaged_at(log) is None
    *_, last, _ = ends(log, page_bytes)
    bits = list(bits_of_frames(HEADER_BYTES, last, page_bytes))[:: page_bytes // PAGE_BYTES]
    assert [bit for bit in bits if damaged_at(flipped(log, bit)) is None] == []
    assert damaged_at(flipped(log, 8 * 9)) == 0


def test_a_flipped_bit_of_the_last_transaction_may_be_a_torn_commit(
    files: Files,
) -> None:
    log = written(files)
    *_, last, end = ends(log)
    found = {damaged_at(flipped(log, bit)) for bit in bits_of_frames(last, end)}
    assert found == {None}


@pytest.mark.parametrize("generations", [1, 2, 3])
def test_each_flipped_bit_of_the_header_is_found_if_no_torn_restart_has_that_bit(
    files: Files, generations: int
) -> None:
    for _ in range(generations - 1):
        written(files)
        files.restart()
    log = written(files)
    count = int.from_bytes(log[COUNT.start : COUNT.stop], "big")
    assert count == generations - 1
    missed = [bit for bit in range(HEADER_BYTES * 8) if damaged_at(flipped(log, bit)) != 0]
    # The next header has an odd count, and a power cut may leave its beginning before the old end.
    assert missed == ([] if count % 2 else [8 * COUNT[-1]])


def test_a_flipped_bit_is_found_before_frames_of_an_earlier_generation(files: Files) -> None:
    written(files, (10, 1_500, 10, 900, 10) * 3)
    files.restart()
    log = written(files)
    *_, last, end = ends(log)
    assert end < len(log)
    bits = list(bits_of_frames(HEADER_BYTES, last))[::5]
    assert [bit for bit in bits if damaged_at(flipped(log, bit)) is None] == []
    bits = list(bits_of_frames(last, len(log)))[::5]
    assert [bit for bit in bits if damaged_at(flipped(log, bit)) is not None] == []


@pytest.mark.parametrize("content", [bytes(SECTOR_BYTES), b"\xff" * SECTOR_BYTES])
def test_a_lost_sector_is_found(files: Files, content: bytes) -> None:
    log = written(files, (10,) * 8)
    *_, certain, last, _ = ends(log)
    for start in range(0, last - SECTOR_BYTES, SECTOR_BYTES):
        damaged = log[:start] + content + log[start + SECTOR_BYTES :]
        is_certain = start + SECTOR_BYTES <= certain - FRAME_BYTES
        assert damaged_at(damaged) is not None or not is_certain


# -- no damage -------------------------------------------------------------------------


def test_no_beginning_of_a_log_is_damaged(files: Files) -> None:
    log = written(files)
    assert {damaged_at(log[:size]) for size in range(len(log))} == {None}
    assert not is_ignored(b"")
    assert not is_ignored(log)


@pytest.mark.parametrize("generations", [1, 2])
def test_a_torn_last_transaction_is_not_damaged(files: Files, generations: int) -> None:
    for _ in range(generations - 1):
        written(files, (10, 1_500, 10, 900, 10) * 3)
        files.restart()
    before = written(files)
    after = files.insert(9, 5_000)
    behind = before[ends(before)[-1] :]
    start, end = ends(after)[-2:]
    behind += bytes(end - start)
    for size in range(0, end - start, 100):
        for lost in range(0, end - start, SECTOR_BYTES):
            torn = bytearray(after[start : start + size] + behind[size:])
            torn[lost : lost + SECTOR_BYTES] = behind[lost : lost + SECTOR_BYTES]
            assert damaged_at(after[:start] + torn) is None


def test_a_stale_transaction_behind_later_commits_is_not_damaged(files: Files) -> None:
    """A torn commit stays behind shorter ones, which overwrite its beginning."""
    before = written(files)
    torn = bytearray(files.insert(9, 6_000))
    torn[ends(before)[-1] + FRAME_BYTES + 100] ^= 1
    files.connection.close(True)
    files.log_path.write_bytes(torn)
    again = apsw.Connection(str(files.path))
    again.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
    for number in range(4):
        again.execute("INSERT INTO t VALUES (?, 0)", (number,))
        assert len(files.log) == len(torn)
        assert ends(files.log)[-1] == len(torn)
        assert damaged_at(files.log) is None
    again.close(True)


def test_a_rolled_back_transaction_is_not_damaged(files: Files) -> None:
    before = written(files)
    spilled = files.spill(6)
    assert len(spilled) > len(before) + 6 * FRAME_BYTES
    assert damaged_at(spilled) is None
    logs = [files.insert(number) for number in range(6)]
    assert {len(each) for each in logs} == {len(spilled)}
    assert {damaged_at(each) for each in logs} == {None}
    after = logs[-1]
    assert damaged_at(flipped(after, 8 * (ends(after)[-2] - 100))) == ends(after)[-2] - FRAME_BYTES


def test_a_torn_commit_over_a_rolled_back_transaction_is_not_damaged(files: Files) -> None:
    """It may mark a spilled frame as a commit, which the next spilled frame continues."""
    written(files)
    spilled = files.spill(6)
    start = ends(spilled)[-1]
    after = files.insert(7)
    end = ends(after)[-1]
    assert (end - start) % FRAME_BYTES == 0
    for size in range(end - start):
        torn = after[: start + size] + spilled[start + size :]
        assert damaged_at(torn) is None


def test_a_restart_of_the_log_is_not_damaged(files: Files) -> None:
    for _ in range(8):
        old = written(files)
        files.restart()
        new = files.insert(1)
        assert len(old) == len(new)
        for size in range(HEADER_BYTES + 1):
            torn = new[:size] + old[size:]
            assert damaged_at(torn) is None
            headers = (old[:HEADER_BYTES], new[:HEADER_BYTES])
            assert is_ignored(torn) == (torn[:HEADER_BYTES] not in headers)
        for size in range(0, len(old), 50):
            assert damaged_at(new[:size] + old[size:]) is None
