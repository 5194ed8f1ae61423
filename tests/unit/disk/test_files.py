"""``Disk.files``: the content of every regular file by path, without any crash state."""

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
