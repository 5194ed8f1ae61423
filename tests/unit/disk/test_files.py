"""The tree of a disk without any crash state: its files, and its digest."""

import os

from sim.disk.calls.process import Process
from sim.disk.disk import Disk


def test_the_files_of_a_running_disk_are_those_that_its_programs_read() -> None:
    disk = Disk()
    process = Process(disk)
    process.mkdir("/d")
    for path, data in (("/a", b"one"), ("/d/b", b"two"), ("/gone", b"")):
        descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, data)
        process.close(descriptor)
    process.unlink("/gone")

    assert disk.files() == {"/a": b"one", "/d/b": b"two"}
    assert disk.files() == disk.snapshot().files()


def test_the_place_of_the_content_is_part_of_the_digest() -> None:
    digests = set()
    for offsets in ((0, 4096), (0, 8192), (1, 4096)):
        disk = Disk()
        process = Process(disk)
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.ftruncate(descriptor, 10_000)
        for offset, data in zip(offsets, (b"one", b"two"), strict=True):
            process.pwrite(descriptor, data, offset)
        digests.add(disk.snapshot().digest())
    assert len(digests) == 3
