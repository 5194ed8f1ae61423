"""Calls on descriptors: one program in a real directory and below the root, with equal results."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import mmap
import os
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.conformance.calls import fails

OFD_GETLK, OFD_SETLK, OFD_SETLKW = 36, 37, 38
RECORD_LOCKS = [
    fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, OFD_GETLK, OFD_SETLK, OFD_SETLKW,
]  # fmt: skip
CONTENT = bytes(range(256)) * 4096


@pytest.fixture(params=["disk", "machine"], autouse=True)
def _place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Enter a directory of the simulated disk, then one of the machine."""
    if request.param == "disk":
        with interposed(Process(Disk()), sandbox=False):
            yield
    else:
        monkeypatch.chdir(tmp_path)
        yield


def test_only_splice_and_sendfile_to_it_take_a_pipe_or_socket() -> None:
    reader, writer = os.pipe()
    one, other = socket.socketpair()
    with closing(one), closing(other), open("f", "w+b", buffering=0) as file:
        file.write(b"content")
        file.seek(0)
        for stream in (reader, one.fileno()):
            for count in (0, 3):
                fails(errno.EINVAL, os.sendfile, file.fileno(), stream, None, count)
                fails(errno.ESPIPE, os.sendfile, file.fileno(), stream, 0, count)
                fails(errno.EINVAL, os.copy_file_range, stream, file.fileno(), count)
                fails(errno.EINVAL, os.copy_file_range, file.fileno(), stream, count)
        directory = os.open("/tmp", os.O_RDONLY)
        fails(errno.EISDIR, os.copy_file_range, directory, file.fileno(), 3)
        fails(errno.EINVAL, os.splice, directory, file.fileno(), 3)
        os.close(directory)
        assert os.sendfile(writer, file.fileno(), 1, 3) == 3
        assert os.splice(reader, file.fileno(), 3) == 3
        assert os.pread(file.fileno(), 9, 0) == b"onttent"
    os.close(reader)
    os.close(writer)


def _opened_content() -> int:
    descriptor = os.open("content", os.O_CREAT | os.O_RDWR)
    os.write(descriptor, CONTENT)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@pytest.mark.parametrize("waiting", [0, 1, 5000])
@pytest.mark.parametrize("call", ["splice", "sendfile"])
def test_a_pipe_takes_the_bytes_that_it_has_room_for(call: str, waiting: int) -> None:
    descriptor, (reader, writer) = _opened_content(), os.pipe()
    if waiting:
        os.write(writer, CONTENT[:8192])
        os.read(reader, 8192 - waiting)
    if call == "splice":
        moved = os.splice(descriptor, writer, len(CONTENT))
    else:
        moved = os.sendfile(writer, descriptor, None, len(CONTENT))
    assert (1 << 15) < moved <= (1 << 16) - waiting
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == moved
    assert os.read(reader, waiting) == CONTENT[8192 - waiting : 8192]
    assert os.read(reader, len(CONTENT)) == CONTENT[:moved]
    for each in (descriptor, reader, writer):
        os.close(each)


@pytest.mark.parametrize("flags", [0, os.SPLICE_F_NONBLOCK])
def test_a_splice_that_must_not_wait_moves_nothing_through_a_pipe_that_is_not_ready(
    flags: int,
) -> None:
    descriptor, (reader, writer) = _opened_content(), os.pipe()
    for pipe in (reader, writer):
        os.set_blocking(pipe, bool(flags))
    fails(errno.EAGAIN, os.splice, reader, descriptor, 5, None, None, flags)
    os.write(writer, bytes(1 << 16))
    fails(errno.EAGAIN, os.splice, descriptor, writer, 5, None, None, flags)
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0
    assert os.splice(reader, descriptor, 5, None, 3, flags) == 5
    assert os.pread(descriptor, 9, 0) == CONTENT[:3] + bytes(5) + CONTENT[8:9]
    for each in (descriptor, reader, writer):
        os.close(each)


def test_a_socket_that_does_not_wait_is_sent_a_part() -> None:
    descriptor, (one, other) = _opened_content(), socket.socketpair()
    with closing(one), closing(other):
        one.setblocking(False)
        sent = os.sendfile(one.fileno(), descriptor, None, len(CONTENT))
        assert 0 < sent < len(CONTENT)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == sent
        assert other.recv(len(CONTENT), socket.MSG_WAITALL | socket.MSG_DONTWAIT) == CONTENT[:sent]
    os.close(descriptor)


def test_asyncio_sends_a_file_that_is_larger_than_the_buffers_of_its_socket() -> None:
    async def receive(other: socket.socket) -> bytes:
        received, loop = b"", asyncio.get_running_loop()
        while data := await loop.sock_recv(other, 1 << 16):
            received += data
        return received

    async def send(file: BinaryIO) -> bytes:
        one, other = socket.socketpair()
        with closing(one), closing(other):
            one.setblocking(False)
            other.setblocking(False)
            receiver = asyncio.create_task(receive(other))
            sent = await asyncio.get_running_loop().sock_sendfile(one, file)
            assert (sent, file.tell()) == (len(CONTENT), len(CONTENT))
            one.close()
            return await receiver

    os.close(_opened_content())
    with open("content", "rb") as source:
        assert asyncio.run(send(source)) == CONTENT


def test_a_directory_is_sent_nowhere() -> None:
    directory, (reader, writer) = os.open(".", os.O_RDONLY), os.pipe()
    fails(errno.EINVAL, os.sendfile, writer, directory, None, 5)
    fails(errno.EINVAL, os.splice, directory, writer, 5)
    for each in (directory, reader, writer):
        os.close(each)


@pytest.mark.parametrize("size", [1, 9000])
def test_a_mapping_of_a_file_that_is_open_for_reading_does_not_resize_it(size: int) -> None:
    Path("f").write_bytes(b"0" * 5000)
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    with open("f", "rb") as file:
        with mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, protection) as memory:
            fails(errno.EINVAL, memory.resize, size)
            assert memory[:] == b"0" * 5000
        fails(errno.EACCES, mmap.mmap, file.fileno(), 0, mmap.MAP_SHARED, protection)
        with mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as memory:
            assert memory.size() == 5000
    with (
        open("f", "r+b") as writable,
        mmap.mmap(writable.fileno(), 0, mmap.MAP_PRIVATE, protection) as memory,
    ):
        memory[:1] = b"1"
        memory.resize(size)
        assert (memory.size(), len(memory)) == (size, size)
    assert Path("f").read_bytes() == b"0" * min(size, 5000) + bytes(max(size - 5000, 0))


def _lock(kind: int, start: int, length: int, *, whence: int = 0, pid: int = 0) -> bytes:
    return struct.pack("hhqqi4x", kind, whence, start, length, pid)


def _opened_twice() -> tuple[int, int]:
    Path("f").write_bytes(b"0" * 100)
    return os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)


@pytest.mark.parametrize("command", RECORD_LOCKS)
def test_a_record_lock_needs_a_structure_with_a_type(command: int) -> None:
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    for argument in (0, 1, 1 << 40):
        fails(errno.EFAULT, fcntl.fcntl, descriptor, command, argument)
    fails(errno.EFAULT, fcntl.fcntl, descriptor, command)
    for content in (b"abc", "abc", _lock(9, 0, 0), _lock(fcntl.F_WRLCK, 0, 0, whence=9)):
        fails(errno.EINVAL, fcntl.fcntl, descriptor, command, content)
    wrong: Any
    for wrong in (None, 1.5):
        with pytest.raises(TypeError):
            fcntl.fcntl(descriptor, command, wrong)
    os.close(descriptor)
    fails(errno.EBADF, fcntl.fcntl, descriptor, command, 0)


def test_a_process_finds_no_lock_of_its_own() -> None:
    first, second = _opened_twice()
    fcntl.lockf(first, fcntl.LOCK_EX, 10)
    wanted = _lock(fcntl.F_WRLCK, 5, 20, pid=7)
    free = _lock(fcntl.F_UNLCK, 5, 20, pid=7)
    assert fcntl.fcntl(second, fcntl.F_GETLK, wanted) == free
    assert fcntl.fcntl(second, fcntl.F_GETLK, wanted + b"more") == free + b"more"
    fails(errno.EINVAL, fcntl.fcntl, second, fcntl.F_GETLK, free)
    os.close(first)
    os.close(second)


def test_a_lock_of_a_description_excludes_other_descriptions_and_the_process() -> None:
    first, second = _opened_twice()
    wanted = _lock(fcntl.F_WRLCK, -90, 20, whence=os.SEEK_END)
    assert fcntl.fcntl(first, OFD_SETLK, wanted) == wanted
    fails(errno.EAGAIN, fcntl.fcntl, second, OFD_SETLK, wanted)
    fails(errno.EAGAIN, fcntl.fcntl, first, fcntl.F_SETLK, wanted)
    fails(errno.EAGAIN, fcntl.lockf, second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fails(errno.EINVAL, fcntl.fcntl, first, OFD_SETLK, _lock(fcntl.F_WRLCK, 0, 1, pid=1))
    found = _lock(fcntl.F_WRLCK, 10, 20, pid=-1)
    assert fcntl.fcntl(second, OFD_GETLK, _lock(fcntl.F_RDLCK, 0, 0)) == found
    assert fcntl.fcntl(first, fcntl.F_GETLK, _lock(fcntl.F_RDLCK, 0, 0)) == found
    free = _lock(fcntl.F_UNLCK, 0, 0)
    assert fcntl.fcntl(first, OFD_GETLK, _lock(fcntl.F_WRLCK, 0, 0)) == free
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_UNLCK, 15, 0))
    fcntl.fcntl(second, OFD_SETLK, _lock(fcntl.F_RDLCK, 15, 0))
    whole = _lock(fcntl.F_RDLCK, 15, 0, pid=-1)
    assert fcntl.fcntl(first, OFD_GETLK, _lock(fcntl.F_WRLCK, 15, 0)) == whole
    fcntl.lockf(first, fcntl.LOCK_EX, 5)
    own = _lock(fcntl.F_WRLCK, 0, 5, pid=os.getpid())
    assert fcntl.fcntl(first, OFD_GETLK, _lock(fcntl.F_RDLCK, 0, 9)) == own
    os.close(first)
    os.close(second)


def test_locks_of_one_owner_and_kind_that_meet_are_one_lock() -> None:
    first, second = _opened_twice()
    third = os.open("f", os.O_RDWR)
    for start, end in ((40, 50), (10, 20), (0, 5), (20, 30), (25, 28)):
        fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_WRLCK, start, end - start))
    fcntl.fcntl(second, OFD_SETLK, _lock(fcntl.F_RDLCK, 35, 3))
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_RDLCK, 38, 2))

    def found(start: int) -> tuple[int, int, int]:
        shown = fcntl.fcntl(third, OFD_GETLK, _lock(fcntl.F_WRLCK, start, 0))
        kind, _, begin, length, _ = struct.unpack("hhqqi4x", shown)
        return kind, begin, length

    assert found(0) == (fcntl.F_WRLCK, 0, 5)
    assert found(5) == (fcntl.F_WRLCK, 10, 20)
    assert found(30) == (fcntl.F_RDLCK, 38, 2)
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_RDLCK, 40, 10))
    assert found(30) == (fcntl.F_RDLCK, 38, 12)
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_UNLCK, 0, 0))
    assert found(0) == (fcntl.F_RDLCK, 35, 3)
    for descriptor in (first, second, third):
        os.close(descriptor)


def test_a_lock_of_a_description_ends_with_its_last_descriptor() -> None:
    first, second = _opened_twice()
    copy = os.dup(first)
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_WRLCK, 0, 0))
    os.close(first)
    fails(errno.EAGAIN, fcntl.lockf, second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(copy)
    fcntl.lockf(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(second)


@pytest.mark.parametrize("command", [OFD_SETLKW, fcntl.F_SETLKW, fcntl.LOCK_EX])
def test_a_thread_waits_for_the_lock_of_a_description(command: int) -> None:
    first, second = _opened_twice()
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_WRLCK, 0, 0))
    taken: list[bytes] = []

    def wait() -> None:
        if command == fcntl.LOCK_EX:
            fcntl.lockf(second, command)
        else:
            fcntl.fcntl(second, command, _lock(fcntl.F_WRLCK, 0, 0))
        taken.append(os.pread(second, 3, 0))

    thread = threading.Thread(target=wait)
    thread.start()
    os.pwrite(first, b"new", 0)
    fcntl.fcntl(first, OFD_SETLK, _lock(fcntl.F_UNLCK, 0, 0))
    thread.join()
    assert taken == [b"new"]
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("command", [fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC])
def test_a_duplicate_has_the_lowest_free_number_from_the_argument_on(command: int) -> None:
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    free = descriptor + 50
    if descriptor < FIRST_DESCRIPTOR:
        # Other tests may have left descriptors of the machine open.
        free = max(map(int, os.listdir("/proc/self/fd"))) + 50
    copies = [fcntl.fcntl(descriptor, command, free) for _ in range(3)]
    assert copies == [free, free + 1, free + 2]
    os.close(copies.pop(0))
    copies.append(fcntl.fcntl(descriptor, command, free - 1))
    copies.append(fcntl.fcntl(descriptor, command, free))
    copies.append(fcntl.fcntl(descriptor, command, 0))
    assert copies[2:4] == [free - 1, free]
    assert copies[4] < free - 1
    assert {os.get_inheritable(each) for each in copies} == {command == fcntl.F_DUPFD}
    for each in copies:
        assert os.fstat(each).st_ino == os.fstat(descriptor).st_ino
        os.close(each)
    fails(errno.EINVAL, fcntl.fcntl, descriptor, command, -1)
    fails(errno.EINVAL, fcntl.fcntl, descriptor, command, (1 << 31) - 1)
    os.close(descriptor)
    fails(errno.EBADF, fcntl.fcntl, descriptor, command, -1)


@pytest.mark.parametrize("command", [fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC])
def test_a_duplicate_fails_if_no_number_from_the_argument_on_is_free(command: int) -> None:
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    last = descriptor + 1023 if descriptor >= FIRST_DESCRIPTOR else limit - 1
    assert fcntl.fcntl(descriptor, command, last) == last
    fails(errno.EMFILE, fcntl.fcntl, descriptor, command, last)
    fails(errno.EINVAL, fcntl.fcntl, descriptor, command, last + 1)
    os.closerange(last, last + 1)
    os.close(descriptor)
