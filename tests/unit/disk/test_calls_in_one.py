"""Calls of the process that stand for several of ``os``, or for a part of one: told by nobody."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import pytest

from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

Step = Callable[[Process], object]


class _Watcher:
    """Notes all that an interposer of either kind is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def before(self, operation: Operation, number: int) -> Operation:
        self.told.append(("before", operation, number))
        return operation

    def after(self, operation: Operation, number: int) -> None:
        self.told.append(("after", operation, number))

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        self.told.append(("reading", path, inode, offset))
        return data

    def opening(self, path: str, descriptors: int) -> None:
        self.told.append(("opening", path, descriptors))

    def closing(self, path: str, inode: int) -> None:
        self.told.append(("closing", path, inode))


def _synced_in_one(path: str) -> Step:
    return lambda process: process.sync_directory(path)


def _synced_in_three(path: str) -> Step:
    def step(process: Process) -> None:
        descriptor = process.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            process.fsync(descriptor)
        finally:
            process.close(descriptor)

    return step


def _read_in_one(path: str) -> Step:
    return lambda process: process.read_file(path)


def _read_in_four(path: str) -> Step:
    def step(process: Process) -> object:
        descriptor = process.open(path, os.O_RDONLY)
        try:
            size_bytes = process.fstat(descriptor).st_size
            return process.pread(descriptor, size_bytes, 0) if size_bytes else b"", size_bytes
        finally:
            process.close(descriptor)

    return step


def _nothing(process: Process) -> None:
    """Leave the disk as it is."""


def _locked(process: Process) -> None:
    for path in ("/d", "/d/file"):
        process.record_lock(process.open(path, os.O_RDONLY), fcntl.LOCK_SH)


def _full(process: Process) -> None:
    while not process._descriptors.is_full:
        process.open("/d/file", os.O_RDONLY)


def _unlinked(process: Process) -> None:
    process.rmdir("/d/below")
    process.mkdir("/d/below")
    process.unlink("/d/file")
    process.close(process.open("/d/file", os.O_CREAT | os.O_RDWR))


DISTURBANCES: dict[str, Step] = {
    "nothing": _nothing, "a lock": _locked, "no descriptor left": _full, "a new one": _unlinked,
}  # fmt: skip
PATHS = ("/", "/d", "d", "/d/", "/d/below", "/l", "/d/file", "/gone", "/gone/below", "", "/d/../d")


def _seen(step: Step, before: Step, watched: str) -> tuple[object, ...]:
    process = Process(Disk(), descriptor_limit=16)
    process.mkdir("/d")
    process.mkdir("/d/below")
    process.symlink("d", "/l")
    process.symlink("d/file", "/f")
    descriptor = process.open("/d/file", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, b"nine byte")
    process.close(descriptor)
    before(process)
    watcher = _Watcher()
    if watched == "operations":
        process.disk.interposer = watcher
    elif watched == "descriptors":
        process.disk.descriptor_interposer = watcher
    answers: list[object] = []
    for _ in range(2):
        try:
            answers.append(step(process))
        except OSError as error:
            answers.append((error.errno, str(error)))
    process.disk.interposer = process.disk.descriptor_interposer = None
    next_free = None if process._descriptors.is_full else process.open("/d", os.O_RDONLY)
    unsynced = [str(micro) for micro in process.disk.unsynced().micros]
    return (
        answers,
        [_is_locked(process.disk, path) for path in ("/d", "/d/file")],
        next_free,
        unsynced,
        [repr(entry) for entry in watcher.told],
    )


def _is_locked(disk: Disk, path: str) -> bool:
    other = Process(disk)
    try:
        other.lockf(other.open(path, os.O_RDONLY), os.F_TEST, 0)
    except PermissionError:
        return True
    return False


@pytest.mark.parametrize("watched", ["nothing", "operations", "descriptors"])
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
@pytest.mark.parametrize("path", PATHS)
def test_a_directory_is_synced_as_by_open_and_fsync_and_close(
    path: str, disturbance: Step, watched: str
) -> None:
    in_one = _seen(_synced_in_one(path), disturbance, watched)
    assert in_one == _seen(_synced_in_three(path), disturbance, watched)


@pytest.mark.parametrize("watched", ["nothing", "operations", "descriptors"])
@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
@pytest.mark.parametrize("path", [*PATHS, "/f", "d/file", "/d/file/"])
def test_a_file_is_read_as_by_open_and_fstat_and_pread_and_close(
    path: str, disturbance: Step, watched: str
) -> None:
    in_one = _seen(_read_in_one(path), disturbance, watched)
    assert in_one == _seen(_read_in_four(path), disturbance, watched)


@pytest.mark.parametrize("path", ["/", "/d", "/d/", "/d/file", "/l", "/gone", "", "/d/file/x"])
def test_a_mode_is_that_of_stat(path: str) -> None:
    process = Process(Disk())
    process.mkdir("/d")
    process.symlink("d", "/l")
    process.close(process.open("/d/file", os.O_CREAT | os.O_RDWR))
    assert _answer(lambda: process.mode_of(path)) == _answer(lambda: process.stat(path).st_mode)


@pytest.mark.parametrize("path", ["/", "/d", "/d/file", "/empty"])
def test_a_size_is_that_of_fstat(path: str) -> None:
    process = Process(Disk())
    process.mkdir("/d")
    process.close(process.open("/empty", os.O_CREAT | os.O_RDWR))
    process.write(process.open("/d/file", os.O_CREAT | os.O_RDWR), b"nine byte")
    descriptor = process.open(path, os.O_RDONLY)
    assert process.size_of(descriptor) == process.fstat(descriptor).st_size
    process.close(descriptor)
    assert _answer(lambda: process.size_of(descriptor)) == _answer(
        lambda: process.fstat(descriptor).st_size
    )


def _answer(call: Callable[[], int]) -> tuple[int | None, str]:
    try:
        return call(), ""
    except OSError as error:
        return None, str(error)


def test_directories_of_one_name_in_each_other_are_told_apart() -> None:
    process = Process(Disk())
    for path in ("/d", "/d/d", "/d/d/d"):
        process.mkdir(path)
    process.stat("/d/d")
    process.close(process.open("/d/d/file", os.O_CREAT | os.O_RDWR))
    assert sorted(process.listdir("/d/d")) == ["d", "file"]
    assert process.listdir("/d/d/d") == []
