"""Calls that the simulated disk does not model are refused by name, and change nothing."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sim.disk.calls.modules import FcntlModule, OsModule
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import UnsupportedOperation


@pytest.fixture
def process() -> Process:
    return Process(Disk())


@pytest.mark.parametrize(
    "name", ["mmap", "ioctl", "aio_write", "mkfifo", "mknod", "setxattr", "getxattr", "splice"]
)
def test_an_unmodelled_call_names_itself(process: Process, name: str) -> None:
    with pytest.raises(UnsupportedOperation, match=f"^{name} is not modelled"):
        getattr(process, name)


@pytest.mark.parametrize("name", ["fdopen", "path"])
def test_a_member_of_the_module_is_named(process: Process, name: str) -> None:
    with pytest.raises(UnsupportedOperation, match=rf"; call OsModule\(process\).{name}$"):
        getattr(process, name)
    assert getattr(OsModule(process), name)


def test_a_name_that_os_does_not_have_is_an_attribute_error(process: Process) -> None:
    for name in ("no_such_call", "_exit", "__nothing__"):
        assert not hasattr(process, name)


@pytest.mark.parametrize("flag", ["O_DIRECT", "O_PATH", "O_ASYNC"])
def test_an_unmodelled_flag_names_itself(process: Process, flag: str) -> None:
    with pytest.raises(UnsupportedOperation, match=f"^open: {flag} is not modelled"):
        process.open("/a", os.O_CREAT | os.O_RDWR | getattr(os, flag))
    assert process.listdir("/") == []


@pytest.mark.parametrize("flags", [1 << 29, os.O_ACCMODE])
def test_unknown_flags_are_shown_as_numbers(process: Process, flags: int) -> None:
    with pytest.raises(UnsupportedOperation, match=f"^open: flags={flags:#o} is not modelled"):
        process.open("/a", flags)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h, d: h.dup2(d, 1), "dup2: fd2=1 is not modelled"),
        (lambda h, d: h.set_status_flags(d, os.O_DIRECT), "fcntl: O_DIRECT is not modelled"),
        (lambda h, d: h.pwritev(d, [b"x"], 0, 10), "pwritev: flags=0x8 is .*; leave it out"),
        (lambda h, d: h.preadv(d, [bytearray(1)], 0, 64), "preadv: flags=0x40 is .*; leave it out"),
        (lambda h, d: h.lseek(h.open("/", os.O_RDONLY), 5, os.SEEK_SET), "lseek: a directory"),
    ],
)
def test_an_unmodelled_variant_names_its_call(
    process: Process, call: Callable[[Process, int], object], message: str
) -> None:
    descriptor = process.open("/a", os.O_CREAT | os.O_RDWR)
    with pytest.raises(UnsupportedOperation, match=f"^{message}"):
        call(process, descriptor)


def test_a_read_that_must_not_wait_finds_all_content_in_the_page_cache(process: Process) -> None:
    descriptor, buffer = process.open("/a", os.O_CREAT | os.O_RDWR), bytearray(3)
    process.write(descriptor, b"content")
    assert process.preadv(descriptor, [buffer], 1, os.RWF_NOWAIT) == 3
    assert buffer == b"ont"


@pytest.mark.parametrize("name", ["flock", "lockf"])
def test_waiting_for_a_lock_is_refused(process: Process, name: str) -> None:
    other = Process(process.disk)
    taken = process.open("/a", os.O_CREAT | os.O_RDWR)
    wanted = other.open("/a", os.O_RDWR)
    getattr(FcntlModule(process), name)(taken, FcntlModule(process).LOCK_EX)
    with pytest.raises(UnsupportedOperation, match=f"^{name}: .* use LOCK_NB$"):
        getattr(FcntlModule(other), name)(wanted, FcntlModule(other).LOCK_EX)


def test_os_lockf_reports_a_lock_of_another_process(process: Process) -> None:
    other = Process(process.disk)
    taken = process.open("/a", os.O_CREAT | os.O_RDWR)
    wanted = other.open("/a", os.O_RDWR)
    process.lockf(taken, os.F_LOCK, 0)
    with pytest.raises(PermissionError):
        other.lockf(wanted, os.F_TEST, 0)


def test_a_simulated_descriptor_is_ebadf_in_real_system_calls(process: Process) -> None:
    descriptor = process.open("/a", os.O_CREAT | os.O_RDWR)
    for call in (os.fsync, os.close, os.fstat):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call(descriptor)


def test_too_many_descriptors_are_emfile_and_create_nothing() -> None:
    process = Process(Disk(), descriptor_limit=2)
    first = process.open("/a", os.O_CREAT | os.O_RDWR)
    process.open("/a", os.O_RDONLY)
    with pytest.raises(OSError, match="Too many open files"):
        process.open("/b", os.O_CREAT | os.O_RDWR)
    with pytest.raises(OSError, match="Too many open files"):
        process.dup(first)
    assert process.listdir("/") == ["a"]
    process.close(first)
    process.open("/b", os.O_CREAT | os.O_RDWR)


def test_the_modules_pass_on_names_that_concern_no_disk_and_refuse_the_others(
    process: Process,
) -> None:
    system = OsModule(process)
    process.mkdir("/d")
    process.open_file("/d/a", "w").close()
    process.symlink("d", "/l")
    process.symlink("nowhere", "/dangling")
    path = system.path
    assert (system.O_CREAT, system.sep, system.fspath("a")) == (os.O_CREAT, "/", "a")
    assert path.join("/d", "a") == "/d/a"
    assert (path.exists("/d/a"), path.exists("/dangling"), path.lexists("/dangling")) == (
        True, False, True,
    )  # fmt: skip
    assert (path.isfile("/d/a"), path.isdir("/l"), path.islink("/l")) == (True, True, True)
    assert (path.isfile("/d"), path.isdir("/d/a"), path.islink("/d")) == (False, False, False)
    assert path.getsize("/d/a") == 0
    assert path.getmtime("/d/a") == process.stat("/d/a").st_mtime
    assert path.samefile("/d/a", "/l/a")
    assert path.abspath("x/../y") == "/y"
    assert not path.exists("a\0b")
    for module, name in (
        (system, "environ"), (system, "getpid"), (system, "system"), (path, "realpath"),
        (path, "expanduser"), (FcntlModule(process), "fcntl"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedOperation):
            getattr(module, name)
    for module, name in ((system, "O_BINARY"), (path, "no_such_function")):
        with pytest.raises(AttributeError):
            getattr(module, name)
