"""A dead process: every call raises, and its file objects are collected without a warning."""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.process import Process, Refusal
from sim.disk.disk import Disk
from sim.errors import PowerOff

DESCRIPTOR = 1 << 29

CALLS: dict[str, tuple[Any, ...]] = {
    "access": ("/a", os.F_OK), "chdir": ("/",), "chmod": ("/a", 0), "chown": ("/a", 0, 0),
    "close": (DESCRIPTOR,), "closerange": (0, 9), "copy_file_range": (DESCRIPTOR, DESCRIPTOR, 1),
    "dup": (DESCRIPTOR,), "dup2": (DESCRIPTOR, DESCRIPTOR + 1), "fchdir": (DESCRIPTOR,),
    "fchmod": (DESCRIPTOR, 0), "fchown": (DESCRIPTOR, 0, 0), "fdatasync": (DESCRIPTOR,),
    "flock": (DESCRIPTOR, 1), "fpathconf": (DESCRIPTOR, 0), "fstat": (DESCRIPTOR,),
    "fstatvfs": (DESCRIPTOR,), "fsync": (DESCRIPTOR,), "ftruncate": (DESCRIPTOR, 0),
    "get_blocking": (DESCRIPTOR,), "get_inheritable": (DESCRIPTOR,), "getcwd": (), "getcwdb": (),
    "isatty": (DESCRIPTOR,), "lchown": ("/a", 0, 0), "link": ("/a", "/b"), "listdir": ("/",),
    "listxattr": (), "lockf": (DESCRIPTOR, os.F_LOCK, 0), "lseek": (DESCRIPTOR, 0, 0),
    "lstat": ("/a",), "mkdir": ("/d",), "msync": (OpenFile(), 0, 1), "open": ("/a", os.O_RDONLY),
    "open_file": ("/a",),
    "pathconf": ("/a", 0), "posix_fadvise": (DESCRIPTOR, 0, 0, 0),
    "posix_fallocate": (DESCRIPTOR, 0, 1), "pread": (DESCRIPTOR, 1, 0),
    "preadv": (DESCRIPTOR, [bytearray(1)], 0), "pwrite": (DESCRIPTOR, b"x", 0),
    "pwritev": (DESCRIPTOR, [b"x"], 0), "read": (DESCRIPTOR, 1), "readlink": ("/l",),
    "readinto": (DESCRIPTOR, bytearray(1)), "readv": (DESCRIPTOR, [bytearray(1)]),
    "conflicting_lock": (DESCRIPTOR, 1, 0, 0, 0), "record_lock": (DESCRIPTOR, 1), "remove": ("/a",),
    "rename": ("/a", "/b"), "replace": ("/a", "/b"), "rmdir": ("/d",), "scandir": ("/",),
    "sendfile": (DESCRIPTOR, DESCRIPTOR, 0, 1), "set_blocking": (DESCRIPTOR, 0),
    "set_inheritable": (DESCRIPTOR, 0), "stat": ("/a",), "statvfs": ("/a",), "symlink": ("x", "/l"),
    "sync": (), "truncate": ("/a", 0), "umask": (0,), "unlink": ("/a",), "utime": ("/a",),
    "dup_from": (DESCRIPTOR, 0), "status_flags": (DESCRIPTOR,), "set_status_flags": (DESCRIPTOR, 0),
    "write": (DESCRIPTOR, b"x"), "writev": (DESCRIPTOR, [b"x"]),
}  # fmt: skip
NO_CALLS = {
    "description_of", "disk", "exit", "is_directory", "open_descriptors", "path_of", "poison",
    "poisoned", "use_descriptors_from",
}  # fmt: skip

DEATHS: dict[str, Callable[[Process], None]] = {
    "power off": lambda process: process.disk.power_off(),
    "kill": lambda process: process.poison(),
    "exit": lambda process: process.exit(),
}


@pytest.fixture
def process() -> Process:
    """Return a process on a disk with an open file and a link."""
    lent = Process(Disk())
    assert lent.open("/a", os.O_CREAT | os.O_RDWR) == DESCRIPTOR
    lent.write(DESCRIPTOR, b"content")
    lent.symlink("a", "/l")
    return lent


@pytest.fixture
def unraisable() -> Iterator[list[object]]:
    """Collect the exceptions that Python would print as ``Exception ignored in``."""
    caught: list[object] = []
    before = sys.unraisablehook
    sys.unraisablehook = caught.append
    yield caught
    sys.unraisablehook = before


def test_every_call_of_the_process_is_listed_here() -> None:
    public = {
        name
        for name, member in inspect.getmembers(Process)
        if not name.startswith("_") and not isinstance(member, Refusal)
    }
    assert public == set(CALLS) | NO_CALLS


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_a_dead_process_raises_and_changes_nothing(
    process: Process, name: str, death: Callable[[Process], None]
) -> None:
    before = process.disk.snapshot().digest()
    operations = process.disk.operations
    death(process)
    assert process.poisoned
    with pytest.raises(PowerOff):
        getattr(process, name)(*CALLS[name])
    assert (process.disk.snapshot().digest(), process.disk.operations) == (before, operations)


def test_a_killed_process_leaves_the_others_alive(process: Process) -> None:
    other = Process(process.disk)
    process.poison()
    assert not other.poisoned
    with other.open_file("/a", "rb") as file:
        assert file.read() == b"content"


def test_the_death_of_a_process_releases_its_locks(process: Process) -> None:
    process.flock(DESCRIPTOR, 2)
    process.record_lock(DESCRIPTOR, 2)
    other = Process(process.disk)
    descriptor = other.open("/a", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        other.flock(descriptor, 2 | 4)
    process.poison()
    other.flock(descriptor, 2 | 4)
    other.record_lock(descriptor, 2 | 4)


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
@pytest.mark.parametrize("mode", ["w", "wb", "r+", "r+b", "r", "rb"])
def test_a_file_object_that_is_collected_after_the_death_is_silent(
    process: Process, unraisable: list[object], mode: str, death: Callable[[Process], None]
) -> None:
    file = process.open_file("/a", mode)
    if "r" in mode:
        file.read(1)
    if mode not in {"r", "rb"}:
        file.write(b"lost" if "b" in mode else "lost")
    before = process.disk.snapshot().digest()
    death(process)
    del file
    gc.collect()
    assert unraisable == []
    assert process.disk.snapshot().digest() == before


def test_a_raw_file_that_is_collected_after_the_death_is_silent(
    process: Process, unraisable: list[object]
) -> None:
    file = process.open_file("/a", "wb", 0)
    process.disk.power_off()
    del file
    gc.collect()
    assert unraisable == []


def test_a_kill_loses_data_that_was_never_flushed(process: Process) -> None:
    file = process.open_file("/a", "ab")
    file.write(b" and more")
    survivor = Process(Disk(process.disk.snapshot()))
    with survivor.open_file("/a", "rb") as found:
        assert found.read() == b"content"
    process.disk.power_off()


@pytest.mark.parametrize("mode", ["w", "wb", "r+b"])
def test_a_file_object_that_is_closed_after_the_death_raises_once(
    process: Process, unraisable: list[object], mode: str
) -> None:
    file = process.open_file("/a", mode)
    file.write(b"lost" if "b" in mode else "lost")
    process.disk.power_off()
    with pytest.raises(PowerOff):
        file.close()
    assert file.closed
    file.close()
    del file
    gc.collect()
    assert unraisable == []


def test_an_abandoned_file_object_of_a_living_process_is_flushed(process: Process) -> None:
    file = process.open_file("/b", "wb")
    file.write(b"content")
    with pytest.warns(ResourceWarning, match="^unclosed file"):
        del file
    assert process.stat("/b").st_size == 7
    assert list(process._descriptors.files) == [DESCRIPTOR]
