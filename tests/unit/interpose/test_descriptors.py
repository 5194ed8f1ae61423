"""Calls on descriptors: one program in a real directory and below the root, with equal results."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.conformance.calls import fails


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
        open("f", "r+b") as file,
        mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, protection) as memory,
    ):
        memory[:1] = b"1"
        memory.resize(size)
        assert (memory.size(), len(memory)) == (size, size)
    assert Path("f").read_bytes() == b"0" * min(size, 5000) + bytes(max(size - 5000, 0))


@pytest.mark.parametrize("command", [fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC])
def test_a_duplicate_has_the_lowest_free_number_from_the_argument_on(command: int) -> None:
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    copies = [fcntl.fcntl(descriptor, command, descriptor + 50) for _ in range(3)]
    assert copies == [descriptor + 50, descriptor + 51, descriptor + 52]
    os.close(copies.pop(0))
    copies.append(fcntl.fcntl(descriptor, command, descriptor + 49))
    copies.append(fcntl.fcntl(descriptor, command, descriptor + 50))
    copies.append(fcntl.fcntl(descriptor, command, 0))
    assert copies[2:4] == [descriptor + 49, descriptor + 50]
    assert copies[4] < descriptor + 49
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
