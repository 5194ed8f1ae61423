"""Damage to the bytes that a read returns: rotten sectors and misdirected writes."""

from __future__ import annotations

import os

import pytest

from faults.injectors.misplaced_bytes import Patch
from sim.disk.crash.survivor_set import SurvivorSet
from tests.unit.faults.faulty_disk import booted, faulty_disk

_CONTENT = bytes(range(256)) * 8


def _different(expected: bytes, actual: bytes) -> list[int]:
    assert len(expected) == len(actual)
    return [index for index, byte in enumerate(actual) if byte != expected[index]]


def test_a_rotten_sector_reads_damaged_and_no_other() -> None:
    faulty = faulty_disk("read * rot:1", {"/f": _CONTENT})
    damaged = _different(_CONTENT, faulty.read("/f"))
    assert len(damaged) == 16
    assert all(512 <= index < 1024 for index in damaged)
    assert faulty.faults.fired == (1,)


def test_rot_is_the_same_for_every_size_of_read_and_after_a_crash() -> None:
    faulty = faulty_disk("read * rot:1", {"/f": _CONTENT})
    whole = faulty.read("/f")
    descriptor = faulty.opened("/f")
    by_bytes = b"".join(
        faulty.process.pread(descriptor, 7, offset) for offset in range(0, len(_CONTENT), 7)
    )
    again = booted(faulty.faults, faulty.disk.snapshot())
    assert whole == by_bytes == again.read("/f") != _CONTENT


def test_rot_differs_from_sector_to_sector_and_from_inode_to_inode() -> None:
    files = {f"/{name}": b"\0" * 2048 for name in "abcd"}
    damages = set()
    for sector in range(4):
        faulty = faulty_disk(f"read * rot:{sector}", files)
        start = 512 * sector
        damages |= {faulty.read(path)[start : start + 512] for path in files}
    assert len(damages) > 12


def test_rot_beyond_the_end_of_the_file_damages_nothing() -> None:
    faulty = faulty_disk("read * rot:9", {"/f": _CONTENT})
    assert faulty.read("/f") == _CONTENT
    assert faulty.faults.fired == (0,)


def test_switching_the_rot_off_restores_the_pristine_data() -> None:
    faulty = faulty_disk("read * rot:0", {"/f": _CONTENT})
    assert faulty.read("/f") != _CONTENT
    assert faulty.disk.snapshot().files()["/f"] == _CONTENT
    faulty.faults.switch(0, on=False)
    assert faulty.read("/f") == _CONTENT


def test_a_misdirected_write_shows_elsewhere_and_not_at_its_place() -> None:
    faulty = faulty_disk("write * #2 misdirected:2", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"FIRST", 0)
    assert faulty.process.pwrite(descriptor, b"SECOND", 600) == 6
    expected = b"FIRST" + b"a" * 1019 + b"SECOND" + b"a" * 506
    assert faulty.read("/f") == expected
    assert faulty.process.pread(descriptor, 10, 1020) == b"aaaaSECOND"
    assert faulty.faults.fired == (1,)
    assert faulty.disk.snapshot().files()["/f"][600:606] == b"SECOND"
    faulty.faults.lift()
    assert faulty.read("/f") == expected
    assert faulty.process.pwrite(descriptor, b"THIRD.", 600) == 6
    assert faulty.process.pread(descriptor, 6, 600) == b"THIRD."


def test_a_misdirected_append_leaves_zeros_at_its_place() -> None:
    faulty = faulty_disk("write * #1 misdirected:0", {"/f": b"abcdef"})
    faulty.process.write(faulty.opened("/f", os.O_WRONLY | os.O_APPEND), b"XY")
    assert faulty.read("/f") == b"XYcdef\0\0"


def test_misdirection_survives_a_crash_and_ends_where_the_program_writes_again() -> None:
    faulty = faulty_disk("write * #1 misdirected:2", {"/f": b"a" * 1536})
    faulty.process.pwrite(faulty.opened("/f"), b"SECOND", 600)
    again = booted(faulty.faults, faulty.disk.snapshot())
    descriptor = again.opened("/f")
    assert again.process.pread(descriptor, 6, 1024) == b"SECOND"
    again.process.pwrite(descriptor, b"BB", 1025)
    assert again.process.pread(descriptor, 6, 1024) == b"SBBOND"
    again.process.ftruncate(descriptor, 1027)
    again.process.ftruncate(descriptor, 1030)
    assert again.process.pread(descriptor, 6, 1024) == b"SBB\0\0\0"
    again.process.pwrite(descriptor, b"THIRD.", 600)
    assert again.process.pread(descriptor, 6, 600) == b"THIRD."


@pytest.mark.parametrize(
    ("barrier", "is_durable"), [("fsync", True), ("of another page", False), ("", False)]
)
def test_misplaced_bytes_return_if_the_disk_loses_what_replaced_them(
    barrier: str, is_durable: bool
) -> None:
    faulty = faulty_disk("write * #1 misdirected:2", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"SECOND", 600)
    faulty.process.fsync(descriptor)
    faulty.process.pwrite(descriptor, b"BB", 1025)
    if barrier == "fsync":
        faulty.process.fsync(descriptor)
    elif barrier:
        synchronous = faulty.process.open("/f", os.O_WRONLY | os.O_DSYNC)
        faulty.process.pwrite(synchronous, b"C", 4096)
    assert faulty.process.pread(descriptor, 6, 1024) == b"SBBOND"
    everything = tuple(range(len(faulty.disk.unsynced().micros)))
    again = booted(faulty.faults, faulty.disk.power_cut(SurvivorSet(everything)))
    expected = b"SBBOND" if is_durable else b"SECOND"
    assert again.process.pread(again.opened("/f"), 6, 1024) == expected


def test_misplaced_bytes_whose_replacement_survived_a_crash_never_return() -> None:
    faulty = faulty_disk("write * #1 misdirected:2", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"SECOND", 600)
    faulty.process.pwrite(descriptor, b"BB", 1025)
    again = booted(faulty.faults, faulty.disk.snapshot())
    again.process.pwrite(again.opened("/f"), b"CC", 1025)
    again = booted(again.faults, again.disk.snapshot())
    assert again.process.pread(again.opened("/f"), 6, 1024) == b"SCCOND"


def test_a_misdirected_write_that_a_later_rule_refuses_changes_nothing() -> None:
    faulty = faulty_disk("write * #1 misdirected:0; write * #1 EIO", {"/f": b"abcdef"})
    descriptor = faulty.opened("/f")
    with pytest.raises(OSError, match="Input/output"):
        faulty.process.pwrite(descriptor, b"XY", 3)
    faulty.process.pwrite(descriptor, b"!", 5)
    assert faulty.read("/f") == b"abcde!"
    assert faulty.faults.fired == (0, 1)


def test_a_misdirected_write_that_a_later_rule_cuts_short_hides_only_the_bytes_written() -> None:
    faulty = faulty_disk("write * #1 misdirected:0; write * #1 short:2B", {"/f": b"abcdefgh"})
    assert faulty.process.pwrite(faulty.opened("/f"), b"WXYZ", 4) == 2
    assert faulty.read("/f") == b"WXcdefgh"
    assert faulty.disk.snapshot().files()["/f"] == b"abcdWXgh"


def test_two_misdirected_writes_to_one_place_both_leave_it_as_it_was() -> None:
    faulty = faulty_disk("write * misdirected:2", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"FIRST", 600)
    faulty.process.pwrite(descriptor, b"SECOND", 600)
    assert faulty.process.pread(descriptor, 6, 600) == b"aaaaaa"


def test_bytes_that_a_short_misdirected_write_does_not_take_are_lost_with_their_own_write() -> None:
    faulty = faulty_disk("write * #2 misdirected:2; write * #2 short:2B", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"bbbb", 600)
    assert faulty.process.pwrite(descriptor, b"WXYZ", 600) == 2
    everything = tuple(range(len(faulty.disk.unsynced().micros)))
    again = booted(faulty.faults, faulty.disk.power_cut(SurvivorSet(everything)))
    assert again.process.pread(again.opened("/f"), 2, 602) == b"aa"


@pytest.mark.parametrize("way", ["sync", "truncate"])
def test_misplaced_bytes_whose_replacement_is_replaced_in_turn_never_return(way: str) -> None:
    faulty = faulty_disk("write * #1 misdirected:2", {"/f": b"a" * 1536})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"SECOND", 600)
    faulty.process.pwrite(descriptor, b"BBBBBB", 1024)
    if way == "sync":
        faulty.process.sync()
    else:
        faulty.process.ftruncate(descriptor, 1024)
    faulty.process.pwrite(descriptor, b"CCCCCC", 1024)
    again = booted(faulty.faults, faulty.disk.snapshot())
    assert again.process.pread(again.opened("/f"), 6, 1024) == b"CCCCCC"


def test_removing_a_range_from_a_patch_leaves_the_parts_around_it() -> None:
    patch = Patch(10, b"abcdef")
    assert list(patch.without(0, 10)) == [patch]
    assert list(patch.without(16, 20)) == [patch]
    assert list(patch.without(12, 14)) == [Patch(10, b"ab"), Patch(14, b"ef")]
    assert list(patch.without(0, 12)) == [Patch(12, b"cdef")]
    assert list(patch.without(14, 99)) == [Patch(10, b"abcd")]
    assert list(patch.without(10, 16)) == []
