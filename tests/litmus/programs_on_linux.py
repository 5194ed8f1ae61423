"""Programs that go on after a failed barrier, for a real file system and the simulated disk.

The device fails the first write of the letters C and D (``failing_images.py``). A file is written
in calls of at most one page, because a larger one makes a folio of several pages, of which the
kernel drops all or none. No program drops an unwritten block of ext4 that it has changed, because
the kernel begins to write the page, and drops it if that ends soon enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import pytest

from tests.litmus.body import content_of, runs_of


class Calls(Protocol):
    """The calls of the module ``os``, or of a process on the simulated disk."""

    def open(self, path: str, flags: int, /) -> int: ...
    def pread(self, fd: int, length: int, offset: int, /) -> bytes: ...
    def pwrite(self, fd: int, data: bytes, offset: int, /) -> int: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None: ...
    def posix_fadvise(self, fd: int, offset: int, length: int, advice: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def close(self, fd: int, /) -> None: ...


class File:
    """The file ``f`` of a program, with what the program has read from it."""

    def __init__(self, calls: Calls, directory: str) -> None:
        self._calls = calls
        self._directory = directory
        self._descriptor = calls.open(f"{directory}/f", os.O_CREAT | os.O_RDWR | os.O_NOATIME)
        self._other_descriptor = calls.open(f"{directory}/f", os.O_RDONLY)
        self.reads: list[str] = []

    def close(self) -> None:
        self._calls.close(self._descriptor)
        self._calls.close(self._other_descriptor)

    def durable(self, *texts: str) -> None:
        """Write texts (runs, such as ``A4096``) one behind the other, and make all durable."""
        offset = 0
        for text in texts:
            self.write(text, offset)
            offset += len(content_of(text))
        self.fsync()
        descriptor = self._calls.open(self._directory, os.O_RDONLY)
        self._calls.fsync(descriptor)
        self._calls.close(descriptor)

    def write(self, text: str, offset: int) -> None:
        self._calls.pwrite(self._descriptor, content_of(text), offset)

    def truncate(self, size: int) -> None:
        self._calls.ftruncate(self._descriptor, size)

    def allocate(self, size: int) -> None:
        self._calls.posix_fallocate(self._descriptor, 0, size)

    def drop(self) -> None:
        self._calls.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        self.read()

    def read(self) -> None:
        """Note the content that the program reads."""
        self.reads.append(runs_of(self._calls.pread(self._descriptor, 1 << 20, 0)))

    def fail(self) -> None:
        """Sync, on a device that fails, and read."""
        with self.failing(), pytest.raises(OSError, match="Input/output error"):
            self.fsync()
        self.read()

    def failing(self) -> AbstractContextManager[None]:
        """The time in which the device fails; a real one knows it by the letters."""
        return nullcontext()

    def report_failure(self) -> None:
        """Sync by another descriptor, which reports that the device has failed before."""
        with pytest.raises(OSError, match="Input/output error"):
            self._calls.fsync(self._other_descriptor)

    def fsync(self) -> None:
        self._calls.fsync(self._descriptor)


def append_written_again(file: File) -> None:
    file.durable("A4096")
    file.write("C4096", 4096)
    file.fail()
    file.write("B4096", 4096)
    file.fsync()


def append_of_two_blocks_written_again_in_the_first(file: File) -> None:
    file.durable("A4096")
    file.write("C4096", 4096)
    file.write("D4096", 8192)
    file.fail()
    file.write("B4096", 4096)
    file.fsync()


def append_truncated_inside_its_block(file: File) -> None:
    file.durable("A4096")
    file.write("C4096", 4096)
    file.fail()
    file.truncate(4196)
    file.write("B4096", 4096)
    file.fsync()


def append_truncated_to_its_start(file: File) -> None:
    file.durable("A4096")
    file.write("C4096", 4096)
    file.fail()
    file.truncate(4096)
    file.write("B4096", 4096)
    file.fsync()


def append_dropped_and_written_again(file: File) -> None:
    file.durable("A4096")
    file.write("C4096", 4096)
    file.fail()
    file.drop()
    file.write("B4096", 4096)
    file.fsync()


def append_in_the_last_block_then_a_write_beside_it(file: File) -> None:
    file.durable("A3000")
    file.write("C500", 3000)
    file.fail()
    file.write("B10", 50)
    file.fsync()


def append_then_a_write_to_another_block(file: File) -> None:
    file.durable("A4096", "A904")
    file.write("C100", 5000)
    file.fail()
    file.write("B10", 50)
    file.fsync()


def append_from_the_last_block_into_a_new_one_written_again(file: File) -> None:
    file.durable("A4096", "A904")
    file.write("C3192", 5000)
    file.write("D4096", 8192)
    file.fail()
    file.write("B3192", 5000)
    file.write("B4096", 8192)
    file.fsync()


def overwrite_then_a_write_beside_it(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C100", 1000)
    file.fail()
    file.write("B50", 3000)
    file.fsync()


def overwrite_then_a_write_to_another_block(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C4096", 0)
    file.fail()
    file.write("B50", 4096)
    file.fsync()


def overwrite_dropped(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C100", 1000)
    file.fail()
    file.drop()
    file.write("B50", 3000)
    file.fsync()


def overwrite_that_is_not_dropped_beside_unsynced_data(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C100", 1000)
    file.fail()
    file.write("B50", 3000)
    file.drop()
    file.fsync()


def overwrite_cut_by_a_truncation(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C4096", 4096)
    file.fail()
    file.truncate(5000)
    file.fsync()


def append_then_a_truncation_to_a_larger_size(file: File) -> None:
    file.durable("A4096", "A904")
    file.write("C100", 5000)
    file.fail()
    file.truncate(9000)
    file.fsync()


def truncation_then_an_append(file: File) -> None:
    file.durable("A4096", "A4096")
    file.truncate(5000)
    file.write("C100", 5000)
    file.fail()
    file.fsync()


def truncation_then_a_write_behind_its_block(file: File) -> None:
    file.durable("A4096", "A4096")
    file.truncate(5000)
    file.write("C100", 4096)
    file.write("D100", 8192)
    file.fail()
    file.write("B100", 8192)
    file.fsync()


def truncation_then_an_append_dropped(file: File) -> None:
    file.durable("A4096", "A4096")
    file.truncate(5000)
    file.write("C100", 5000)
    file.fail()
    file.drop()
    file.write("B100", 5100)
    file.fsync()


def truncation_of_an_overwrite_dropped(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C100", 4096)
    file.fail()
    file.truncate(5000)
    file.drop()
    file.write("B100", 4500)
    file.fsync()


def append_whose_barrier_reports_a_failure(file: File) -> None:
    file.durable("A4096", "A4096")
    file.write("C100", 0)
    file.fail()
    file.write("B100", 8192)
    file.report_failure()


def unallocated_block_written_again(file: File) -> None:
    file.durable("A4096")
    file.truncate(12288)
    file.fsync()
    file.write("C4096", 4096)
    file.fail()
    file.write("B4096", 4096)
    file.fsync()


def allocated_block_written_again(file: File) -> None:
    file.durable("A4096")
    file.allocate(12288)
    file.fsync()
    file.write("C100", 4096)
    file.fail()
    file.write("B100", 4096)
    file.fsync()


PROGRAMS: Final[tuple[Callable[[File], None], ...]] = (
    append_written_again,
    append_of_two_blocks_written_again_in_the_first,
    append_truncated_inside_its_block,
    append_truncated_to_its_start,
    append_dropped_and_written_again,
    append_in_the_last_block_then_a_write_beside_it,
    append_then_a_write_to_another_block,
    append_from_the_last_block_into_a_new_one_written_again,
    overwrite_then_a_write_beside_it,
    overwrite_then_a_write_to_another_block,
    overwrite_dropped,
    overwrite_that_is_not_dropped_beside_unsynced_data,
    overwrite_cut_by_a_truncation,
    append_then_a_truncation_to_a_larger_size,
    truncation_then_an_append,
    truncation_then_a_write_behind_its_block,
    truncation_then_an_append_dropped,
    truncation_of_an_overwrite_dropped,
    append_whose_barrier_reports_a_failure,
    unallocated_block_written_again,
    allocated_block_written_again,
)
