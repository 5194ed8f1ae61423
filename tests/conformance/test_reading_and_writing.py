"""Reading, writing, seeking, and the size of a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.arms import Arm, file_system_type
from tests.conformance.calls import CREATE, content, fails, put

TIME_NS = 1_000_000_000_000_000_000


@pytest.fixture
def descriptor(arm: Arm) -> Iterator[int]:
    """Lend a descriptor, for reading and writing, of a file that holds ``content``."""
    lent = arm.os.open(put(arm, "a", b"content"), os.O_RDWR)
    yield lent
    arm.os.close(lent)


def test_reads_and_writes_move_the_offset(arm: Arm, descriptor: int) -> None:
    assert arm.os.read(descriptor, 3) == b"con"
    assert arm.os.write(descriptor, b"TE") == 2
    assert arm.os.read(descriptor, 100) == b"nt"
    assert arm.os.read(descriptor, 100) == b""
    assert content(arm, arm.path("a")) == b"conTEnt"


def test_pread_and_pwrite_leave_the_offset(arm: Arm, descriptor: int) -> None:
    assert arm.os.pwrite(descriptor, b"XY", 5) == 2
    assert arm.os.pread(descriptor, 3, 4) == b"eXY"
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == 0


@pytest.mark.parametrize("data", [bytearray(b"new"), memoryview(b"anew")[1:]])
def test_any_buffer_can_be_written(arm: Arm, descriptor: int, data: bytearray) -> None:
    assert arm.os.write(descriptor, data) == 3
    assert arm.os.pwrite(descriptor, data, 5) == 3
    assert content(arm, arm.path("a")) == b"newtenew"


def test_text_cannot_be_written(arm: Arm, descriptor: int) -> None:
    with pytest.raises(TypeError):
        arm.os.write(descriptor, "text")


def test_nothing_written_changes_nothing(arm: Arm, descriptor: int) -> None:
    arm.os.utime(descriptor, ns=(TIME_NS, TIME_NS))
    assert arm.os.write(descriptor, b"") == 0
    assert arm.os.pwrite(descriptor, b"", 100) == 0
    status = arm.os.fstat(descriptor)
    assert (status.st_size, status.st_mtime_ns) == (7, TIME_NS)


def test_a_descriptor_does_only_what_it_was_opened_for(arm: Arm) -> None:
    path = put(arm, "a", b"content")
    reader, writer = arm.os.open(path, os.O_RDONLY), arm.os.open(path, os.O_WRONLY)
    fails(errno.EBADF, arm.os.write, reader, b"x")
    fails(errno.EBADF, arm.os.write, reader, b"")
    fails(errno.EBADF, arm.os.read, writer, 1)
    fails(errno.EINVAL, arm.os.ftruncate, reader, 0)
    fails(errno.EBADF, arm.os.posix_fallocate, reader, 0, 1)
    arm.os.close(reader)
    arm.os.close(writer)


def test_a_gap_reads_as_zeros_and_takes_no_blocks(arm: Arm) -> None:
    descriptor = arm.os.open(arm.path("a"), CREATE)
    arm.os.pwrite(descriptor, b"end", 1 << 20)
    status = arm.os.fstat(descriptor)
    assert status.st_size == (1 << 20) + 3
    assert status.st_blocks * 512 < status.st_size
    assert arm.os.pread(descriptor, 10, (1 << 20) - 5) == b"\0\0\0\0\0end"
    assert arm.os.pread(descriptor, 10_000, 0) == bytes(10_000)
    arm.os.close(descriptor)


def test_what_ftruncate_cut_off_reads_as_zeros_afterwards(arm: Arm, descriptor: int) -> None:
    arm.os.ftruncate(descriptor, 3)
    arm.os.ftruncate(descriptor, 5)
    assert content(arm, arm.path("a")) == b"con\0\0"
    fails(errno.EINVAL, arm.os.ftruncate, descriptor, -1)


def test_truncate_takes_a_path_and_a_descriptor(arm: Arm, descriptor: int) -> None:
    arm.os.truncate(arm.path("a"), 4)
    assert content(arm, arm.path("a")) == b"cont"
    arm.os.truncate(descriptor, 2)
    assert content(arm, arm.path("a")) == b"co"
    fails(errno.EINVAL, arm.os.truncate, arm.path("a"), -1)
    fails(errno.ENOENT, arm.os.truncate, arm.path("missing"), 0)
    fails(errno.EISDIR, arm.os.truncate, arm.top, 0)


def test_fallocate_grows_a_file_and_never_shrinks_it(arm: Arm, descriptor: int) -> None:
    arm.os.posix_fallocate(descriptor, 5, 5)
    assert content(arm, arm.path("a")) == b"content\0\0\0"
    arm.os.posix_fallocate(descriptor, 0, 1)
    assert arm.os.fstat(descriptor).st_size == 10
    fails(errno.EINVAL, arm.os.posix_fallocate, descriptor, 0, 0)
    fails(errno.EINVAL, arm.os.posix_fallocate, descriptor, -1, 5)


@pytest.mark.parametrize(
    ("position", "how", "expected"),
    [(3, os.SEEK_SET, 3), (2, os.SEEK_CUR, 3), (-2, os.SEEK_END, 5), (9, os.SEEK_END, 16)],
)
def test_lseek_moves_the_offset(
    arm: Arm, descriptor: int, position: int, how: int, expected: int
) -> None:
    arm.os.read(descriptor, 1)
    assert arm.os.lseek(descriptor, position, how) == expected
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == expected


@pytest.mark.parametrize(
    ("position", "how"), [(-1, os.SEEK_SET), (-8, os.SEEK_END), (-1, os.SEEK_CUR), (0, 99)]
)
def test_lseek_refuses_what_lies_before_the_file(
    arm: Arm, descriptor: int, position: int, how: int
) -> None:
    fails(errno.EINVAL, arm.os.lseek, descriptor, position, how)


def test_seek_data_and_seek_hole_find_the_blocks(arm: Arm) -> None:
    if not arm.is_simulated and file_system_type(arm.top) not in {"ext4", "tmpfs"}:
        pytest.skip("this file system may keep other blocks than were written")
    descriptor = arm.os.open(arm.path("a"), CREATE)
    arm.os.pwrite(descriptor, b"x", 8192)
    arm.os.pwrite(descriptor, b"x" * 4097, 20480)
    arm.os.ftruncate(descriptor, 40_000)
    found = [
        arm.os.lseek(descriptor, position, how)
        for how in (os.SEEK_DATA, os.SEEK_HOLE)
        for position in (0, 8192, 8200, 12288, 20480, 28000)
    ]
    assert found == [8192, 8192, 8200, 20480, 20480, 28000, 0, 12288, 12288, 12288, 28672, 28672]
    fails(errno.ENXIO, arm.os.lseek, descriptor, 30_000, os.SEEK_DATA)
    fails(errno.ENXIO, arm.os.lseek, descriptor, 40_000, os.SEEK_HOLE)
    fails(errno.ENXIO, arm.os.lseek, descriptor, -1, os.SEEK_DATA)
    arm.os.close(descriptor)


def test_beyond_the_largest_file_is_efbig(arm: Arm, descriptor: int) -> None:
    if not arm.is_simulated and file_system_type(arm.top) != "ext4":
        pytest.skip("the largest file is that of ext4")
    largest = ((1 << 32) - 1) * 4096
    assert arm.os.pwrite(descriptor, b"xyz", largest - 2) == 2
    fails(errno.EFBIG, arm.os.pwrite, descriptor, b"x", largest)
    fails(errno.EFBIG, arm.os.ftruncate, descriptor, largest + 1)
    fails(errno.EFBIG, arm.os.truncate, arm.path("a"), largest + 1)
    fails(errno.EFBIG, arm.os.posix_fallocate, descriptor, largest, 1)
    fails(errno.EINVAL, arm.os.lseek, descriptor, largest + 1, os.SEEK_SET)
    fails(errno.EOVERFLOW, arm.os.sendfile, descriptor, descriptor, (1 << 63) - 2, 1)
    for offset in (largest, (1 << 63) - 1):
        for count, start in ((1, 0), (0, 0), (1, largest)):
            fails(errno.EFBIG, arm.os.copy_file_range, descriptor, descriptor, count, start, offset)
    assert arm.os.copy_file_range(descriptor, descriptor, 9, 0, largest - 2) == 2
    assert arm.os.lseek(descriptor, 0, os.SEEK_END) == largest


def test_a_range_that_ends_beyond_the_largest_offset_is_einval(arm: Arm, descriptor: int) -> None:
    largest = (1 << 63) - 1
    assert arm.os.pread(descriptor, 5, largest - 5) == b""
    fails(errno.EINVAL, arm.os.pread, descriptor, 5, largest - 4)
    fails(errno.EINVAL, arm.os.preadv, descriptor, [bytearray(5)], largest)
    assert arm.os.pwrite(descriptor, b"", largest) == 0
    fails(errno.EINVAL, arm.os.pwrite, descriptor, b"x", largest)
    fails(errno.EINVAL, arm.os.pwritev, descriptor, [b"x"], largest)
    fails(errno.EINVAL, arm.os.sendfile, descriptor, descriptor, largest, 1)
    arm.os.lseek(descriptor, 2, os.SEEK_SET)
    fails(errno.EOVERFLOW, arm.os.lockf, descriptor, os.F_LOCK, largest)
    arm.os.lockf(descriptor, os.F_LOCK, largest - 1)


def test_vectors_are_read_and_written_as_one(arm: Arm, descriptor: int) -> None:
    buffers = [bytearray(3), bytearray(0), bytearray(9)]
    assert arm.os.readv(descriptor, buffers) == 7
    assert buffers == [b"con", b"", b"tent\0\0\0\0\0"]
    assert arm.os.writev(descriptor, [b"12", bytearray(b"3"), b""]) == 3
    assert arm.os.preadv(descriptor, buffers[:1], 7) == 3
    assert buffers[0] == b"123"
    assert arm.os.pwritev(descriptor, [b"4", b"5"], 8) == 2
    assert content(arm, arm.path("a")) == b"content145"
    fails(errno.EINVAL, arm.os.writev, descriptor, [b""] * 1025)


def test_a_vector_without_bytes_can_be_read_from_a_directory(arm: Arm, descriptor: int) -> None:
    directory = arm.os.open(arm.top, os.O_RDONLY)
    for buffers in ([], [bytearray(0)]):
        for offset in (-1, 0, 5):
            assert arm.os.preadv(directory, buffers, offset) == 0
        assert arm.os.readv(directory, buffers) == 0
    fails(errno.EINVAL, arm.os.preadv, directory, [], -2)
    fails(errno.EISDIR, arm.os.preadv, directory, [bytearray(1)], 0)
    arm.os.close(directory)
    fails(errno.EBADF, arm.os.preadv, directory, [], 0)
    writer = arm.os.open(arm.path("a"), os.O_WRONLY)
    fails(errno.EBADF, arm.os.preadv, writer, [], 0)
    arm.os.close(writer)


def test_sendfile_writes_at_the_offset_of_its_target(arm: Arm, descriptor: int) -> None:
    target = arm.os.open(arm.path("b"), CREATE)
    assert arm.os.sendfile(target, descriptor, 3, 100) == 4
    assert arm.os.sendfile(target, descriptor, None, 3) == 3
    assert arm.os.sendfile(target, descriptor, None, 2) == 2
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == 5
    assert content(arm, arm.path("b")) == b"tentconte"
    arm.os.close(target)


def test_copy_file_range_moves_only_the_offsets_that_are_left_out(
    arm: Arm, descriptor: int
) -> None:
    target = arm.os.open(arm.path("b"), CREATE)
    assert arm.os.copy_file_range(descriptor, target, 3) == 3
    assert arm.os.copy_file_range(descriptor, target, 100, offset_src=5) == 2
    assert arm.os.copy_file_range(descriptor, target, 2, offset_dst=10) == 2
    assert arm.os.copy_file_range(descriptor, target, 5, offset_src=7) == 0
    assert content(arm, arm.path("b")) == b"connt\0\0\0\0\0te"
    offsets = [arm.os.lseek(each, 0, os.SEEK_CUR) for each in (descriptor, target)]
    assert offsets == [5, 5]
    arm.os.close(target)
    with pytest.raises(ValueError, match="negative"):
        arm.os.copy_file_range(descriptor, descriptor, -1)


def test_copies_refuse_directories_overlaps_and_append(arm: Arm, descriptor: int) -> None:
    directory = arm.os.open(arm.top, os.O_RDONLY)
    appends = arm.os.open(arm.path("b"), CREATE | os.O_APPEND)
    fails(errno.EISDIR, arm.os.copy_file_range, directory, descriptor, 1)
    fails(errno.EBADF, arm.os.copy_file_range, descriptor, appends, 1)
    fails(errno.EINVAL, arm.os.copy_file_range, descriptor, descriptor, 3, 0, 1)
    fails(errno.EINVAL, arm.os.copy_file_range, descriptor, descriptor, 0, -1, 1)
    fails(errno.EINVAL, arm.os.sendfile, descriptor, directory, 0, 1)
    assert arm.os.sendfile(descriptor, directory, 0, 0) == 0
    fails(errno.EINVAL, arm.os.sendfile, appends, descriptor, 0, 1)
    fails(errno.EBADF, arm.os.sendfile, directory, descriptor, 0, 1)
    fails(errno.EINVAL, arm.os.sendfile, directory, descriptor, -1, 1)
    writer = arm.os.open(arm.path("b"), os.O_WRONLY)
    fails(errno.EBADF, arm.os.sendfile, descriptor, writer, 0, 1)
    arm.os.close(writer)
    arm.os.close(directory)
    arm.os.close(appends)


@pytest.mark.parametrize("flag", [os.O_SYNC, os.O_DSYNC])
def test_a_descriptor_that_syncs_writes_like_any_other(arm: Arm, flag: int) -> None:
    descriptor = arm.os.open(arm.path("a"), CREATE | flag)
    assert arm.os.write(descriptor, b"content") == 7
    arm.os.sync()
    arm.os.close(descriptor)
    assert content(arm, arm.path("a")) == b"content"


@pytest.mark.parametrize("flags", [os.RWF_HIPRI, os.RWF_DSYNC, os.RWF_SYNC, os.RWF_APPEND])
def test_a_vector_is_written_as_its_flags_say(arm: Arm, descriptor: int, flags: int) -> None:
    appends = flags == os.RWF_APPEND
    arm.os.lseek(descriptor, 2, os.SEEK_SET)
    assert arm.os.pwritev(descriptor, [b"4", b"5"], 1, flags) == 2
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == 2
    assert arm.os.pwritev(descriptor, [b"6"], -1, flags) == 1
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == (10 if appends else 3)
    written = b"content456" if appends else b"c46tent"
    assert arm.os.pread(descriptor, 20, 0) == written
    assert arm.os.pwritev(descriptor, [b""], 99, flags) == 0
    fails(errno.EINVAL, arm.os.pwritev, descriptor, [b"x"], -2, flags)
    fails(errno.EINVAL, arm.os.pwritev, descriptor, [b"x"], (1 << 63) - 1, flags)
    buffer = bytearray(3)
    assert arm.os.preadv(descriptor, [buffer], 0, flags) == 3
    assert buffer == written[:3]
    reader = arm.os.open(arm.path("a"), os.O_RDONLY)
    fails(errno.EBADF, arm.os.pwritev, reader, [b"x"], 0, flags)
    arm.os.close(reader)


def test_what_changes_content_changes_the_time_of_modification(arm: Arm, descriptor: int) -> None:
    changes: dict[str, Callable[[], object]] = {
        "write": lambda: arm.os.write(descriptor, b"x"),
        "truncate": lambda: arm.os.truncate(arm.path("a"), 3),
        "ftruncate to the same size": lambda: arm.os.ftruncate(descriptor, 3),
        "fallocate": lambda: arm.os.posix_fallocate(descriptor, 0, 100),
        "open with O_TRUNC": lambda: arm.os.close(arm.os.open(arm.path("a"), os.O_TRUNC)),
    }
    keeps: dict[str, Callable[[], object]] = {
        "read": lambda: arm.os.read(descriptor, 1),
        "chmod": lambda: arm.os.chmod(arm.path("a"), 0o600),
        "fsync": lambda: arm.os.fsync(descriptor),
        "link": lambda: arm.os.link(arm.path("a"), arm.path("b")),
        "rename": lambda: arm.os.rename(arm.path("b"), arm.path("c")),
        "unlink": lambda: arm.os.unlink(arm.path("c")),
    }
    for name, change in (changes | keeps).items():
        arm.os.utime(arm.path("a"), ns=(TIME_NS, TIME_NS))
        change()
        kept = arm.os.stat(arm.path("a")).st_mtime_ns == TIME_NS
        assert kept == (name in keeps), name
