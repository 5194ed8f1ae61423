"""Calls of ``os``, ``io`` and ``fcntl`` go to the disk below the root, and nowhere else."""

from __future__ import annotations

import errno
import fcntl
import functools
import io
import os
import posix
import random
import secrets
import stat
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from powercut.interpose.installation import Installation, install
from powercut.interpose.interposed import interposed
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError, UnsupportedOperation


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """An interposed process; the real ``tmp_path`` is made before it."""
    assert tmp_path.exists()
    process = Process(Disk())
    with interposed(process, sandbox=False):
        yield process


def test_files_below_the_root_are_on_the_disk_and_not_on_the_machine(process: Process) -> None:
    Path("/disk/note").write_text("hello", "utf-8")
    assert process.disk.files() == {"/disk/note": b"hello"}
    assert not os.path.lexists(f"/proc/{os.getpid()}/root/disk")


def test_relative_paths_start_at_the_root(process: Process) -> None:
    assert os.getcwd() == "/disk"
    assert os.getcwdb() == b"/disk"
    os.mkdir("a")
    os.chdir("a")
    Path("b").touch()
    assert sorted(process.disk.files()) == ["/disk/a/b"]
    assert os.listdir() == ["b"]
    assert [entry.name for entry in os.scandir()] == ["b"]


def test_paths_that_cross_the_root_are_found_on_the_other_side(process: Process) -> None:
    Path("a").touch()
    assert os.path.exists("/tmp/../disk/a")
    assert os.path.exists("../usr")
    assert os.path.exists("/disk/../usr")
    assert os.path.exists("/disk/./a")
    assert os.path.exists(b"/disk//a")
    assert not os.path.exists("/disk2")


def test_a_change_to_a_real_directory_and_back(process: Process, tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    os.chdir(tmp_path)
    assert os.listdir() == ["real"]
    descriptor = os.open("/disk", os.O_RDONLY)
    os.fchdir(descriptor)
    assert os.listdir() == []
    os.close(descriptor)


def test_the_current_directory_of_the_machine_comes_back(tmp_path: Path) -> None:
    before = os.getcwd()
    with interposed(Process(Disk()), sandbox=False):
        os.chdir(tmp_path)
    assert os.getcwd() == before


@pytest.mark.parametrize(
    "call", [os.rename, os.replace, os.link], ids=["rename", "replace", "link"]
)
def test_names_do_not_move_between_the_worlds(
    process: Process, tmp_path: Path, call: object
) -> None:
    assert callable(call)
    Path("a").touch()
    for source, target in (("/disk/a", tmp_path / "b"), (tmp_path / "c", "/disk/d")):
        with pytest.raises(OSError, match="cross-device") as refused:
            call(source, target)
        assert refused.value.errno == errno.EXDEV


def test_bytes_are_copied_between_the_worlds(process: Process, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"0123456789")
    here = os.open(tmp_path / "real", os.O_RDWR)
    there = os.open("there", os.O_RDWR | os.O_CREAT)
    assert os.copy_file_range(here, there, 4) == 4
    assert os.sendfile(there, here, 2, 3) == 3
    assert os.copy_file_range(there, here, 2, 0, 8) == 2
    os.close(here)
    os.close(there)
    assert process.disk.files() == {"/disk/there": b"0123234"}
    assert (tmp_path / "real").read_bytes() == b"0123456701"


def test_each_boot_has_descriptors_of_its_own(process: Process) -> None:
    first = os.open("f", os.O_CREAT | os.O_WRONLY)
    assert first >= FIRST_DESCRIPTOR
    other = Process(Disk())
    other.use_descriptors_from(first + 4096)
    assert other.open("/f", os.O_CREAT) != first


def test_a_late_close_hits_no_file_of_the_next_lifetime() -> None:
    with interposed(Process(Disk())):
        late = os.open("f", os.O_CREAT | os.O_WRONLY)
        unclosed = os.fdopen(os.open("g", os.O_CREAT | os.O_WRONLY), "w", encoding="utf-8")
        unclosed.write("never written")
    with interposed(Process(Disk())) as process:
        Path("h").touch()
        with open("h", "rb"), pytest.raises(OSError, match="Bad file descriptor"):
            os.close(late)
        process.poison()
    del unclosed


def test_file_objects_are_those_of_io(process: Process, tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    for path in ("/disk/f", str(tmp_path / "real")):
        with open(path, "w+b") as file:
            assert isinstance(file, io.BufferedRandom)
            assert isinstance(file.raw, io.FileIO)
        with io.FileIO(path) as raw:
            assert isinstance(raw, io.FileIO)
            assert isinstance(raw, io.RawIOBase)
    assert issubclass(io.FileIO, io.RawIOBase)
    assert not isinstance(io.BytesIO(), io.FileIO)
    for name in ("read", "more"):
        with pytest.raises(TypeError, match="immutable type"):
            setattr(io.FileIO, name, None)


def test_a_class_derived_from_file_io_works_in_both_worlds(
    process: Process, tmp_path: Path
) -> None:
    class Loud(io.FileIO):
        def readall(self) -> bytes:
            return super().readall().upper()

    for path in ("/disk/f", str(tmp_path / "f")):
        Path(path).write_bytes(b"abc")
        with Loud(path) as file:
            assert file.readall() == b"ABC"
            assert isinstance(file, io.FileIO)
    assert not issubclass(io.FileIO, Loud)


def test_an_opener_decides_the_world(process: Process, tmp_path: Path) -> None:
    opened: list[int] = []

    def opener(path: str, flags: int) -> int:
        opened.append(flags)
        return os.open(path, flags, dir_fd=directory)

    for folder in ("/disk", str(tmp_path)):
        directory = os.open(folder, os.O_RDONLY)
        with open("f", "w", opener=opener, encoding="utf-8") as file:
            file.write("x")
        os.close(directory)
    assert opened == [os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC] * 2
    assert process.disk.files() == {"/disk/f": b"x"}
    assert (tmp_path / "f").read_bytes() == b"x"


def test_an_opener_is_not_called_for_arguments_that_are_refused(
    process: Process, tmp_path: Path
) -> None:
    opened: list[int] = []

    def opener(path: str, flags: int) -> int:
        opened.append(os.open(path, flags))
        return opened[-1]

    for folder in ("/disk", str(tmp_path)):
        make: Callable[..., object] = open
        for call in (make, io.FileIO):
            for path, mode, closefd in (("f", "wz", True), ("f", "w", False), ("\0", "w", True)):
                with pytest.raises(ValueError, match=r"mode|closefd=False|null"):
                    call(f"{folder}/{path}", mode, closefd=closefd, opener=opener)
        with pytest.raises(ValueError, match="encoding"):
            make(f"{folder}/f", "wb", -1, "utf-8", opener=opener)
        assert os.listdir(folder) == []
    assert not opened
    assert not process.open_descriptors


def test_a_file_without_a_name_gets_one_by_its_descriptor(process: Process) -> None:
    descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY)
    os.write(descriptor, b"whole")
    directory = os.open(".", os.O_RDONLY)
    os.link(f"/proc/self/fd/{descriptor}", "a", dst_dir_fd=directory)
    assert process.disk.files() == {"/disk/a": b"whole"}


def test_locks_flags_and_duplicates_of_a_descriptor(process: Process) -> None:
    descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = os.open("f", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    fcntl.flock(other, fcntl.LOCK_SH)
    fcntl.lockf(descriptor, fcntl.LOCK_EX, 4)
    fcntl.fcntl(descriptor, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_UNLCK, 0, 0, 4, 0))
    assert fcntl.fcntl(descriptor, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
    fcntl.fcntl(descriptor, fcntl.F_SETFD, 0)
    assert os.get_inheritable(descriptor)
    assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC)
    assert os.fstat(copy).st_ino == os.fstat(descriptor).st_ino
    with pytest.raises(OSError, match="Inappropriate ioctl"):
        fcntl.ioctl(descriptor, 0x5401)
    with pytest.raises(OSError, match="not supported"):  # FICLONE: pathlib then copies the bytes
        fcntl.ioctl(copy, 0x40049409, descriptor)
    os.closerange(descriptor, copy + 1)


def test_calls_without_a_model_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperation, match="mkfifo"), interposed(Process(Disk())):
        os.mkfifo("f")


@pytest.mark.skipif(not hasattr(os, "statx"), reason="os has statx from CPython 3.15 on")
def test_statx_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperation, match="statx"), interposed(Process(Disk())):
        os.__dict__["statx"](".", 0)


@pytest.mark.skipif(not hasattr(os, "readinto"), reason="os has readinto from CPython 3.14 on")
def test_readinto_fills_a_buffer_from_the_offset(process: Process) -> None:
    Path("f").write_bytes(b"content")
    descriptor, buffer = os.open("f", os.O_RDONLY), bytearray(5)
    readinto = os.__dict__["readinto"]
    assert (readinto(descriptor, buffer), bytes(buffer)) == (5, b"conte")
    assert (readinto(descriptor, buffer), bytes(buffer)) == (2, b"ntnte")
    assert readinto(descriptor, buffer) == 0
    os.close(descriptor)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda _descriptor: os.mknod("g"), "mknod"),
        (lambda _descriptor: os.open("g", os.O_CREAT | os.O_DIRECT), "open: O_DIRECT"),
        (lambda descriptor: os.preadv(descriptor, [bytearray(1)], 0, 64), "preadv: flags=0x40"),
        (lambda descriptor: os.pwritev(descriptor, [b"x"], 0, 8), "pwritev: flags=0x8"),
    ],
    ids=["mknod", "open", "preadv", "pwritev"],
)
def test_a_refusal_that_the_program_swallows_is_raised_at_the_end(
    call: Callable[[int], object], refusal: str
) -> None:
    process = Process(Disk())
    with interposed(process):
        descriptor = os.open("f", os.O_CREAT | os.O_RDWR)
    block = interposed(process)
    with pytest.raises(UnsupportedOperation, match=refusal), block, suppress(Exception):
        call(descriptor)


def test_extended_attributes_do_not_exist(process: Process) -> None:
    Path("f").touch()
    assert os.listxattr("f") == []
    for path in ("f", f"/tmp/..{os.getcwd()}/f"):
        with pytest.raises(OSError, match="not supported"):
            os.getxattr(path, "user.x")
    with pytest.raises(OSError, match="not supported"):
        os.setxattr("f", "user.x", b"x")


def test_a_call_on_a_descriptor_may_name_its_arguments(process: Process) -> None:
    descriptor = os.open("f", os.O_CREAT)
    os.fchmod(descriptor, mode=0o604)
    assert stat.S_IMODE(os.stat("f").st_mode) == 0o604


def test_umask_and_sync_are_those_of_the_process(process: Process) -> None:
    before = os.umask(0o077)
    Path("f").touch()
    assert stat.S_IMODE(os.stat("f").st_mode) == 0o600
    os.umask(before)
    os.symlink("f", "link")
    assert os.readlink("link") == "f"
    os.sync()
    assert not process.disk.unsynced().micros


def test_names_that_were_bound_early_are_found() -> None:
    """Two functions that nothing else uses stand for a call of ``os`` and its replacement."""

    def original() -> None:
        pass

    def new() -> None:
        pass

    dictionary, listed, members = {"key": original}, [original], {original}
    partial = functools.partial(map, original)

    class Holder:
        attribute = original
        static = staticmethod(original)

        def __init__(self) -> None:
            self.early = original

    class Slots:
        __slots__ = ("early", "never_set")

        def __init__(self) -> None:
            self.early = original

    def function(default: object = original, *, keyword: object = original) -> object:
        return default, keyword, kept

    kept = original
    holder, slots = Holder(), Slots()
    Installation([(original, new)]).replace_everywhere()
    assert (dictionary, listed, members) == ({"key": new}, [new], {new})
    assert partial.args == (new,)
    assert (Holder.attribute, Holder.static) == (new, new)
    assert (holder.early, slots.early) == (new, new)
    assert function() == (new, new, new)


def test_the_router_is_inert_without_a_process(tmp_path: Path) -> None:
    install()
    assert os.stat is posix.stat
    assert os.stat in os.supports_dir_fd
    with pytest.raises(FileNotFoundError):
        os.stat("/disk")
    (tmp_path / "f").write_bytes(b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


@pytest.mark.parametrize("root", ["disk", "/", "/disk/", "/a/../b"])
def test_a_root_is_a_normalized_absolute_path(root: str) -> None:
    with pytest.raises(HarnessError, match="absolute path"), interposed(Process(Disk()), root):
        pass


def test_a_root_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="exists on this machine"):
        interposed(Process(Disk()), str(tmp_path)).__enter__()


def test_blocks_do_not_nest(process: Process) -> None:
    with pytest.raises(HarnessError, match="interposed already"), interposed(process):
        pass


def test_random_numbers_repeat_on_an_equal_disk_and_differ_within_a_run() -> None:
    def drawn() -> list[object]:
        with interposed(Process(Disk())):
            return [
                os.urandom(8),
                os.urandom(8),
                uuid.uuid4(),
                secrets.token_hex(4),
                random.random(),
            ]

    first, again = drawn(), drawn()
    assert first == again
    assert len(set(map(str, first))) == len(first)


def test_the_random_numbers_of_the_machine_go_on_behind_a_block() -> None:
    state = random.getstate()
    with interposed(Process(Disk())):
        random.random()
    assert random.getstate() == state
    assert os.urandom(16) != os.urandom(16)
