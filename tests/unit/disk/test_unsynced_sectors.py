"""The sectors of large writes: so many are lost one by one, and pages beyond in halves."""

from __future__ import annotations

import os

import pytest

from sim.disk.cache.operation import Write
from sim.disk.calls.process import Process
from sim.disk.crash.micro_operation import WriteBlock
from sim.disk.crash.persistence import EXT4, POSIX, SCC
from sim.disk.crash.pieces import halves
from sim.disk.crash.survivor_set import is_tearable
from sim.disk.crash.unsynced import Unsynced
from sim.disk.crash.unsynced_sectors import UnsyncedSectors
from sim.disk.disk import Disk

MOST = 12


class _Writer:
    """Writes to files of a disk, and shows the pieces under a model with ``MOST`` sectors."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.process = Process(self.disk)
        self.files: dict[str, int] = {}

    def write(self, name: str, size_bytes: int) -> None:
        if name not in self.files:
            self.files[name] = self.process.open(name, os.O_CREAT | os.O_RDWR)
        self.process.write(self.files[name], bytes(size_bytes))

    def unsynced(self) -> Unsynced:
        unsynced = Unsynced(POSIX.with_most_sectors(MOST), self.disk.image.platter)
        for number, operation in enumerate(self.disk.journal, 1):
            unsynced.advance(operation, number)
        return unsynced


@pytest.fixture
def writer() -> _Writer:
    return _Writer()


def sizes(unsynced: Unsynced) -> list[int]:
    return [len(each.data) for each in unsynced.micros if isinstance(each, WriteBlock)]


def test_a_write_beyond_the_limit_is_one_piece(writer: _Writer) -> None:
    writer.write("/a", 8 * 512)
    writer.write("/b", 5 * 512)
    assert sizes(writer.unsynced()) == [*[512] * 8, 5 * 512]


@pytest.mark.parametrize(
    ("offset", "size", "cut"),
    [
        (0, 16384, [8192, 8192]),
        (0, 8192, [4096, 4096]),
        (4096, 12288, [8192, 4096]),
        (100, 8192, [8092, 100]),
        (0, 4608, [4096, 512]),
        (512, 7168, [3584, 3584]),
        (512, 8192, [7680, 512]),
        (0, 4096, [4096]),
        (0, 32768, [16384, 16384]),
        (0, 32769, [32769]),
    ],
)
def test_a_write_beyond_the_limit_is_cut_at_the_end_of_a_block(
    writer: _Writer, offset: int, size: int, cut: list[int]
) -> None:
    writer.write("/a", 8 * 512)
    writer.write("/c", 4 * 512)
    writer.write("/b", 0)
    writer.process.lseek(writer.files["/b"], offset, os.SEEK_SET)
    writer.write("/b", size)
    assert sizes(writer.unsynced()) == [*[512] * 12, *cut]


def test_half_a_large_write_is_not_torn(writer: _Writer) -> None:
    writer.write("/a", 9 * 512)
    writer.write("/b", 512)
    unsynced = writer.unsynced()
    writes = [each for each in unsynced.micros if isinstance(each, WriteBlock)]
    assert [len(each.data) for each in writes] == [4096, 512, 512]
    assert [is_tearable(each, unsynced.model) for each in writes] == [False, True, True]


def test_a_large_write_leaves_room_for_small_ones_behind_it(writer: _Writer) -> None:
    writer.write("/a", 100 * 512)
    writer.write("/b", 3 * 512)
    writer.write("/a", 2 * 512)
    assert sizes(writer.unsynced()) == [100 * 512, 512, 512, 512, 512, 512]


def test_one_file_has_two_thirds_of_the_sectors(writer: _Writer) -> None:
    writer.write("/log", 8 * 512)
    writer.write("/log", 512)
    writer.write("/b", 4 * 512)
    assert sizes(writer.unsynced()) == [*[512] * 8, 512, *[512] * 4]
    writer.write("/log", 1000)
    assert sizes(writer.unsynced())[-1] == 1000


def test_a_barrier_makes_room(writer: _Writer) -> None:
    writer.write("/a", 8 * 512)
    writer.write("/b", 4 * 512)
    writer.process.fsync(writer.files["/a"])
    writer.write("/a", 8 * 512)
    assert sizes(writer.unsynced()) == [512] * 12
    writer.process.sync()
    writer.write("/b", 8 * 512)
    assert sizes(writer.unsynced()) == [512] * 8


def test_a_copy_counts_on_from_the_same_number(writer: _Writer) -> None:
    writer.write("/a", 8 * 512)
    copy = writer.unsynced().copy()
    done = len(writer.disk.journal)
    writer.write("/b", 5 * 512)
    for number, operation in enumerate(writer.disk.journal[done:], done + 1):
        copy.advance(operation, number)
    assert sizes(copy) == [*[512] * 8, 5 * 512]


def test_a_copy_of_the_count_is_independent(writer: _Writer) -> None:
    count = UnsyncedSectors(MOST)
    writer.write("/a", 8 * 512)
    copy = count.copy()
    for operation in writer.disk.journal:
        copy.advance(operation)
    assert (count.in_all, copy.in_all) == (0, 8)


def test_the_model_says_that_it_is_reduced() -> None:
    assert EXT4.with_most_sectors(MOST).is_reduced
    assert EXT4.with_whole_calls().is_reduced
    assert not EXT4.is_reduced
    assert SCC.with_most_sectors(MOST) is SCC, "its writes are lost as a whole anyway"


def test_the_second_half_of_a_write_is_one_to_the_file_that_the_first_half_leaves() -> None:
    write = Write("/f", 2, 4096, b"a" * 4096 + b"b" * 4096, 0, 7)
    first = Write("/f", 2, 4096, b"a" * 4096, 0, 7)
    assert halves(write) == (first, Write("/f", 2, 8192, b"b" * 4096, 8192, 7))
    assert halves(write._replace(size_before=9999))[1].size_before == 9999
