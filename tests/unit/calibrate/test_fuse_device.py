"""The FUSE protocol, through the directory of images; needs root and FUSE."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator

import pytest

from powercut.calibrate.image_device import ImageDevices, image_devices
from powercut.fuse.mount import mount_error, path_of

SIZE = 1 << 20

needs_fuse = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/dev/fuse") or mount_error("fuse") is not None,
    reason="root and FUSE are needed",
)
pytestmark = needs_fuse


@pytest.fixture
def devices() -> Iterator[ImageDevices]:
    with image_devices(SIZE) as opened:
        opened.create("one")
        opened.create("two")
        yield opened


@pytest.fixture
def root(devices: ImageDevices) -> str:
    return path_of(devices._mounted)


def name(image: str) -> str:
    return f"{image}.powercut-{os.getpid()}"


def test_directory_lists_the_images(devices: ImageDevices, root: str) -> None:
    assert sorted(os.listdir(root)) == [name("one"), name("two")]
    devices.remove("one")
    assert os.listdir(root) == [name("two")]


def test_many_images_are_listed_in_several_requests(devices: ImageDevices, root: str) -> None:
    for number in range(400):
        devices.create(f"{number:0100}")
    assert len(set(os.listdir(root))) == 402


def test_attributes_are_those_of_a_directory_and_of_files(root: str) -> None:
    assert os.stat(root).st_mode == stat.S_IFDIR | 0o700
    status = os.stat(f"{root}/{name('one')}")
    assert (status.st_mode, status.st_size) == (stat.S_IFREG | 0o600, SIZE)
    assert os.statvfs(root).f_namemax == 255


def test_bytes_are_read_as_they_were_written(root: str) -> None:
    descriptor = os.open(f"{root}/{name('one')}", os.O_RDWR)
    data = bytes(range(256)) * 1024
    assert os.pwrite(descriptor, data, 4000) == len(data)
    os.fsync(descriptor)
    assert os.pread(descriptor, len(data) + 200, 3900) == bytes(100) + data + bytes(100)
    os.close(descriptor)
    with open(f"{root}/{name('one')}", "rb") as file:
        assert file.read() == bytes(4000) + data + bytes(SIZE - 4000 - len(data))


def test_log_has_the_writes_and_flushes_of_one_image(devices: ImageDevices, root: str) -> None:
    devices.start_log("one")
    for image in ("one", "two"):
        descriptor = os.open(f"{root}/{name(image)}", os.O_RDWR)
        os.pwrite(descriptor, b"B" * 512, 1024)
        os.fsync(descriptor)
        os.close(descriptor)
    assert devices.log_length() == 2
    log = devices.end_log()
    assert [type(entry).__name__ for entry in log] == ["Write", "Flush"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda path: os.stat(f"{path}-missing"), errno.ENOENT),
        (lambda path: os.truncate(path, 10), errno.EPERM),
        (lambda path: os.mkdir(f"{path}-new"), errno.ENOSYS),
        (os.unlink, errno.ENOSYS),
        (os.listdir, errno.ENOTDIR),
    ],
    ids=["missing", "truncate", "mkdir", "unlink", "list-a-file"],
)
def test_call_that_is_not_supported_fails_with_its_errno(
    root: str, call: Callable[[str], object], code: int
) -> None:
    with pytest.raises(OSError, match=os.strerror(code)) as refused:
        call(f"{root}/{name('one')}")
    assert refused.value.errno == code


def test_write_behind_the_end_of_the_device_is_refused(root: str) -> None:
    descriptor = os.open(f"{root}/{name('one')}", os.O_RDWR)
    with pytest.raises(OSError, match="No space left"):
        os.pwrite(descriptor, b"B", SIZE)
    os.close(descriptor)


def test_image_that_was_removed_cannot_be_read(devices: ImageDevices, root: str) -> None:
    descriptor = os.open(f"{root}/{name('one')}", os.O_RDONLY)
    devices.remove("one")
    with pytest.raises(OSError, match="Input/output error"):
        os.pread(descriptor, 10, 0)
    os.close(descriptor)


def test_images_are_gone_when_their_server_has_ended() -> None:
    with image_devices(SIZE) as opened:
        opened.create("one")
        descriptor = os.open(f"{path_of(opened._mounted)}/{name('one')}", os.O_RDONLY)
    with pytest.raises(OSError, match=os.strerror(errno.ENOTCONN)):
        os.pread(descriptor, 10, 0)
    with pytest.raises(OSError, match=os.strerror(errno.ENOTCONN)):
        os.close(descriptor)
