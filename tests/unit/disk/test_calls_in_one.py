"""Calls of the handle that stand for several of ``os``, or for a part of one: told by nobody."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import pytest

from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.operation import Operation

Step = Callable[[Handle], object]


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
    return lambda handle: handle.sync_directory(path)


def _synced_in_three(path: str) -> Step:
    def step(handle: Handle) -> None:
        descriptor = handle.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            handle.fsync(descriptor)
        finally:
            handle.close(descriptor)

    return step


def _read_in_one(path: str) -> Step:
    return lambda handle: handle.read_file(path)


def _read_in_four(path: str) -> Step:
    def step(handle: Handle) -> object:
        descriptor = handle.open(path, os.O_RDONLY)
        try:
            size_bytes = handle.fstat(descriptor).st_size
            return handle.pread(descriptor, size_bytes, 0) if size_bytes else b"", size_bytes
        finally:
            handle.close(descriptor)

    return step


def _nothing(handle: Handle) -> None:
    """Leave the disk as it is."""


def _locked(handle: Handle) -> None:
    for path in ("/d", "/d/file"):
        handle.record_lock(handle.open(path, os.O_RDONLY), fcntl.LOCK_SH)


def _full(handle: Handle) -> None:
    while not handle._descriptors.is_full:
        handle.open("/d/file", os.O_RDONLY)


def _unlinked(handle: Handle) -> None:
    handle.rmdir("/d/below")
    handle.mkdir("/d/below")
    handle.unlink("/d/file")
    handle.close(handle.open("/d/file", os.O_CREAT | os.O_RDWR))


DISTURBANCES: dict[str, Step] = {
    "nothing": _nothing, "a lock": _locked, "no descriptor left": _full, "a new one": _unlinked,
}  # fmt: skip
PATHS = ("/", "/d", "d", "/d/", "/d/below", "/l", "/d/file", "/gone", "/gone/below", "", "/d/../d")


def _seen(step: Step, before: Step, watched: str) -> tuple[object, ...]:
    handle = Handle(Disk(), descriptor_limit=16)
    handle.mkdir("/d")
    handle.mkdir("/d/below")
    handle.symlink("d", "/l")
    handle.symlink("d/file", "/f")
    descriptor = handle.open("/d/file", os.O_CREAT | os.O_RDWR)
    handle.write(descriptor, b"nine byte")
    handle.close(descriptor)
    before(handle)
    watcher = _Watcher()
    if watched == "operations":
        handle.disk.interposer = watcher
    elif watched == "descriptors":
        handle.disk.descriptor_interposer = watcher
    answers: list[object] = []
    for _ in range(2):
        try:
            answers.append(step(handle))
        except OSError as error:
            answers.append((error.errno, str(error)))
    handle.disk.interposer = handle.disk.descriptor_interposer = None
    next_free = None if handle._descriptors.is_full else handle.open("/d", os.O_RDONLY)
    pending = [str(micro) for micro in handle.disk.pending().micros]
    return (
        answers,
        [_is_locked(handle.disk, path) for path in ("/d", "/d/file")],
        next_free,
        pending,
        [repr(entry) for entry in watcher.told],
    )


def _is_locked(disk: Disk, path: str) -> bool:
    other = Handle(disk)
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
    handle = Handle(Disk())
    handle.mkdir("/d")
    handle.symlink("d", "/l")
    handle.close(handle.open("/d/file", os.O_CREAT | os.O_RDWR))
    assert _answer(lambda: handle.mode_of(path)) == _answer(lambda: handle.stat(path).st_mode)


@pytest.mark.parametrize("path", ["/", "/d", "/d/file", "/empty"])
def test_a_size_is_that_of_fstat(path: str) -> None:
    handle = Handle(Disk())
    handle.mkdir("/d")
    handle.close(handle.open("/empty", os.O_CREAT | os.O_RDWR))
    handle.write(handle.open("/d/file", os.O_CREAT | os.O_RDWR), b"nine byte")
    descriptor = handle.open(path, os.O_RDONLY)
    assert handle.size_of(descriptor) == handle.fstat(descriptor).st_size
    handle.close(descriptor)
    assert _answer(lambda: handle.size_of(descriptor)) == _answer(
        lambda: handle.fstat(descriptor).st_size
    )


def _answer(call: Callable[[], int]) -> tuple[int | None, str]:
    try:
        return call(), ""
    except OSError as error:
        return None, str(error)


def test_directories_of_one_name_in_each_other_are_told_apart() -> None:
    handle = Handle(Disk())
    for path in ("/d", "/d/d", "/d/d/d"):
        handle.mkdir(path)
    handle.stat("/d/d")
    handle.close(handle.open("/d/d/file", os.O_CREAT | os.O_RDWR))
    assert sorted(handle.listdir("/d/d")) == ["d", "file"]
    assert handle.listdir("/d/d/d") == []
