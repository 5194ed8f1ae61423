"""A disk that fills up: at the write, late at the fsync, or at the close."""

from __future__ import annotations

import errno
import os

import pytest

from sim.disk.crash.survivor_set import SurvivorSet
from tests.unit.faults.faulty_disk import FaultyDisk, booted, faulty_disk


def _full(raised: pytest.ExceptionInfo[OSError]) -> bool:
    return raised.value.errno == errno.ENOSPC


def test_a_write_takes_the_bytes_that_fit_and_the_next_one_fails() -> None:
    faulty = faulty_disk("write * after 10B ENOSPC")
    descriptor = faulty.opened("/f")
    assert faulty.process.write(descriptor, b"1234567") == 7
    assert faulty.process.write(descriptor, b"1234567") == 3
    with pytest.raises(OSError, match="No space") as raised:
        faulty.process.write(descriptor, b"4567")
    assert _full(raised)
    assert faulty.read("/f") == b"1234567123"
    assert faulty.faults.fired == (2,)


def test_overwriting_needs_no_space() -> None:
    faulty = faulty_disk("write * after 0B ENOSPC", {"/f": b"12345"})
    descriptor = faulty.opened("/f")
    assert faulty.process.pwrite(descriptor, b"abc", 1) == 3
    assert faulty.process.pwrite(descriptor, b"xyz", 4) == 1
    assert faulty.read("/f") == b"1abcx"


def test_truncating_and_removing_files_returns_their_space() -> None:
    faulty = faulty_disk("write * after 10B ENOSPC")
    descriptor = faulty.opened("/f")
    faulty.process.write(descriptor, b"1234567890")
    faulty.process.ftruncate(descriptor, 4)
    assert faulty.process.pwrite(faulty.opened("/g"), b"abcdefgh", 0) == 6
    faulty.process.link("/g", "/other")
    faulty.process.unlink("/g")
    with pytest.raises(OSError, match="No space"):
        faulty.process.pwrite(descriptor, b"56", 4)
    faulty.process.unlink("/other")
    assert faulty.process.pwrite(descriptor, b"5678901", 4) == 6


def test_a_replaced_file_returns_its_space() -> None:
    faulty = faulty_disk("write * after 10B ENOSPC")
    faulty.process.write(faulty.opened("/f"), b"12345")
    faulty.process.write(faulty.opened("/f.tmp"), b"12345")
    faulty.process.replace("/f.tmp", "/f")
    assert faulty.process.write(faulty.opened("/f.tmp"), b"1234567") == 5


def test_only_matching_files_count() -> None:
    faulty = faulty_disk("write *.log after 4B ENOSPC")
    assert faulty.process.write(faulty.opened("/other"), b"123456") == 6
    assert faulty.process.write(faulty.opened("/a.log"), b"123456") == 4


def test_a_full_disk_stays_full_over_a_kill_but_not_over_a_power_cut_that_loses_the_data() -> None:
    faulty = faulty_disk("write * after 10B ENOSPC")
    faulty.process.write(faulty.opened("/f"), b"1234567890")
    again = booted(faulty.faults, faulty.disk.snapshot())
    with pytest.raises(OSError, match="No space"):
        again.process.write(again.opened("/g"), b"x")
    count = len(faulty.disk.unsynced().micros)
    lost = faulty.disk.power_cut(SurvivorSet.of_mask(0, count))
    empty = booted(faulty.faults, lost)
    assert empty.process.write(empty.opened("/g"), b"x") == 1


def test_data_written_while_the_rule_was_off_counts_once_it_is_on() -> None:
    faulty = faulty_disk("off write * after 10B ENOSPC")
    descriptor = faulty.opened("/f")
    assert faulty.process.write(descriptor, b"123456789012") == 12
    faulty.faults.switch(0, on=True)
    with pytest.raises(OSError, match="No space"):
        faulty.process.write(descriptor, b"x")


def _late(plan: str) -> tuple[FaultyDisk, int]:
    faulty = faulty_disk(plan, {"/durable": b"1234"})
    descriptor = faulty.opened("/f")
    assert faulty.process.write(descriptor, b"123456789012") == 12
    return faulty, descriptor


def test_with_delayed_allocation_the_barrier_fails_until_there_is_room() -> None:
    faulty, descriptor = _late("fsync * after 10B ENOSPC")
    for _ in range(2):
        with pytest.raises(OSError, match="No space") as raised:
            faulty.process.fsync(descriptor)
        assert _full(raised)
    unsynced = [str(micro) for micro in faulty.disk.unsynced().micros]
    assert any(micro.startswith("data of inode") for micro in unsynced)
    assert faulty.read("/f") == b"123456789012"
    faulty.process.fsync(faulty.opened("/durable"))
    faulty.process.ftruncate(descriptor, 9)
    faulty.process.fsync(descriptor)
    assert faulty.faults.fired == (2,)


def test_with_delayed_allocation_the_close_of_a_file_with_new_data_fails() -> None:
    faulty, descriptor = _late("close * after 10B ENOSPC")
    faulty.process.fsync(descriptor)
    faulty.process.close(faulty.opened("/durable", os.O_RDONLY))
    with pytest.raises(OSError, match="No space") as raised:
        faulty.process.close(descriptor)
    assert _full(raised)
    assert faulty.faults.fired == (1,)


def test_a_file_that_grows_without_a_write_takes_no_space_and_returns_only_what_it_took() -> None:
    faulty = faulty_disk("write * after 10B ENOSPC")
    first, second = faulty.opened("/f"), faulty.opened("/g")
    assert faulty.process.write(first, b"12345") == 5
    faulty.process.ftruncate(first, 100)
    assert faulty.process.write(second, b"12") == 2
    faulty.process.ftruncate(first, 0)
    assert faulty.process.write(second, b"345678901") == 8
