"""What a disk shows of its files without a word about what is pending."""

import os

from sim.disk.disk import Disk
from sim.disk.handle import Handle


def test_the_files_of_a_running_disk_are_those_that_its_programs_read() -> None:
    disk = Disk()
    handle = Handle(disk)
    handle.mkdir("/d")
    for path, data in (("/a", b"one"), ("/d/b", b"two"), ("/gone", b"")):
        descriptor = handle.open(path, os.O_CREAT | os.O_WRONLY)
        handle.write(descriptor, data)
        handle.close(descriptor)
    handle.unlink("/gone")

    assert disk.files() == {"/a": b"one", "/d/b": b"two"}
    assert disk.files() == disk.snapshot().files()
