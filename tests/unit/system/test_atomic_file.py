"""Old or new, never mixed; durable on return; nothing left behind by a clean failure."""

from __future__ import annotations

import errno

import pytest

from system.errors import StorageFull
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from tests.unit.system.faulty_files import FaultyHost


def test_the_file_is_durable_before_its_name_and_its_name_before_the_return(
    here: FaultyHost,
) -> None:
    write_atomic(here.files, "f", b"new", here.ids)

    assert here.files.calls == [
        "open-create f.tmp.00000001",
        "pwrite f.tmp.00000001",
        "fsync f.tmp.00000001",
        "close f.tmp.00000001",
        "replace f",
        "sync_dir ",
    ]
    assert here.read("f") == b"new"


def test_short_writes_are_completed(here: FaultyHost) -> None:
    here.files.transfer_less("pwrite", "f.tmp.00000001", 2)

    write_atomic(here.files, "f", b"0123456789", here.ids)

    assert here.read("f") == b"0123456789"


@pytest.mark.parametrize("call", ["open-create", "pwrite", "fsync", "close", "replace"])
def test_a_clean_failure_leaves_the_old_file_and_nothing_else(here: FaultyHost, call: str) -> None:
    here.write("f", b"old")
    here.files.fail(call, "f" if call == "replace" else ".tmp.00000001", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(here.files, "f", b"new", here.ids)

    assert here.names() == ["f"]
    assert here.read("f") == b"old"


def test_a_full_disk_is_reported_with_the_path(here: FaultyHost) -> None:
    here.write("d/f", b"old")
    here.files.fail("pwrite", ".tmp.00000001", errno.ENOSPC)

    with pytest.raises(StorageFull, match="d/f: no space left") as full:
        write_atomic(here.files, "d/f", b"new", here.ids)

    assert full.value.path == "d/f"
    assert here.names("d") == ["f"]


def test_a_temporary_file_that_cannot_be_removed_is_left_to_the_sweep(here: FaultyHost) -> None:
    here.files.fail("fsync", ".tmp.00000001", errno.EIO)
    here.files.fail("unlink", ".tmp.00000001", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(here.files, "f", b"new", here.ids)

    assert here.names() == ["f.tmp.00000001"]
    assert sweep_temporaries(here.files, "") == ["f.tmp.00000001"]
    assert here.names() == []


def test_the_name_of_a_temporary_file_left_by_a_crash_is_not_used_again(here: FaultyHost) -> None:
    here.write("f.tmp.00000001", b"left by a crash")

    write_atomic(here.files, "f", b"new", here.ids)

    assert here.read("f") == b"new"
    assert here.read("f.tmp.00000001") == b"left by a crash"


def test_when_all_names_are_taken_nothing_is_overwritten(here: FaultyHost) -> None:
    for number in range(1, 20):
        here.write(f"f.tmp.{number:08x}", b"left by a crash")

    with pytest.raises(FileExistsError):
        write_atomic(here.files, "f", b"new", here.ids)

    assert len(here.names()) == 19


def test_only_temporary_files_of_the_prefix_are_swept(here: FaultyHost) -> None:
    names = ["a", "a.tmp", "a.tmp.0000000g", "a.tmp.012345678", "b.tmp.01234567"]
    for name in [*names, "a.tmp.01234567", "a.quarantine.1.tmp.abcdef01"]:
        here.write(f"d/{name}", b"")

    swept = sweep_temporaries(here.files, "d", "a")

    assert swept == ["d/a.quarantine.1.tmp.abcdef01", "d/a.tmp.01234567"]
    assert here.names("d") == names


def test_a_whole_file_is_read(here: FaultyHost) -> None:
    here.write("f", b"x" * 3_000_000)

    assert read_whole(here.files, "f") == b"x" * 3_000_000


def test_a_read_that_gives_less_than_the_file_has_is_followed_by_others(here: FaultyHost) -> None:
    here.write("f", b"0123456789")
    for nth, short_bytes in ((1, 4), (2, 3)):
        here.files.transfer_less("pread", "f", short_bytes, nth)

    assert read_whole(here.files, "f") == b"0123456789"

    here.files.fail("pread", "f", errno.EIO, nth=2, sticky=True)
    here.files.transfer_less("pread", "f", 4)
    with pytest.raises(OSError, match="Input/output error"):
        read_whole(here.files, "f")
