"""Short transfers are completed, and the end of a file is never guessed."""

from __future__ import annotations

import errno

import pytest

from system.ports import OpenMode
from system.storage.transfer import append_remainder, read_all, write_all
from tests.unit.system.faulty_files import FaultyHost


def test_short_reads_are_completed(here: FaultyHost) -> None:
    here.write("f", b"0123456789")
    here.files.transfer_less("pread", "f", 3)

    assert read_all(here.files.open("f", OpenMode.READ)) == b"0123456789"


def test_part_of_a_file_can_be_read(here: FaultyHost) -> None:
    here.write("f", b"0123456789")

    assert read_all(here.files.open("f", OpenMode.READ), 2, 5) == b"234"


def test_a_read_of_nothing_before_the_end_is_an_error(here: FaultyHost) -> None:
    here.write("f", b"0123456789")
    here.files.transfer_less("pread", "f", 0)

    with pytest.raises(OSError, match="no bytes at offset 0 of 10") as refused:
        read_all(here.files.open("f", OpenMode.READ))

    assert refused.value.errno == errno.EIO


def test_short_writes_are_completed(here: FaultyHost) -> None:
    here.write("f", b"....")
    here.files.transfer_less("pwrite", "f", 1)
    here.files.transfer_less("append", "f", 2)

    write_all(here.files.open("f", OpenMode.WRITE), b"abc", 1)
    append_remainder(here.files.open("f", OpenMode.APPEND), b"xyz", 1)

    assert here.read("f") == b".abcyz"


def test_a_write_that_takes_nothing_is_an_error(here: FaultyHost) -> None:
    here.write("f", b"")
    here.files.transfer_less("append", "f", 0)

    with pytest.raises(OSError, match="took nothing"):
        append_remainder(here.files.open("f", OpenMode.APPEND), b"xyz", 1)
