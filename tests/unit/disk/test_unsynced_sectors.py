"""The sectors of large writes: so many are lost one by one, and the calls beyond as a whole."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.micro_operation import WriteBlock
from sim.disk.crash.persistence import EXT4, POSIX, SCC
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


def test_a_whole_call_is_not_torn(writer: _Writer) -> None:
    writer.write("/a", 9 * 512)
    writer.write("/b", 512)
    unsynced = writer.unsynced()
    writes = [each for each in unsynced.micros if isinstance(each, WriteBlock)]
    assert [is_tearable(each, unsynced.model) for each in writes] == [False, True]


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
