"""File objects of the disk in the hands of libraries in C."""

from __future__ import annotations

from typing import IO

from sim.disk.calls.process import Process
from sim.disk.disk import Disk


def test_a_file_gives_numpy_no_descriptor() -> None:
    """C code cannot use a descriptor of the disk. numpy asks first, in a function of this name."""

    def isfileobj(file: IO[bytes]) -> bool:
        try:
            file.fileno()
        except OSError:
            return False
        return True

    with Process(Disk()).open_file("/f", "wb") as file:
        assert not isfileobj(file)
        assert file.fileno() > 0
