"""A real file system on a block device that fails a few writes, and its power cut.

A process serves the images of such devices. Needs root, FUSE and loop devices.
"""

from __future__ import annotations

import errno
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final
from unittest.mock import patch

import pytest

from powercut.calibrate import image_device, image_server
from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.real_file_system import RealFileSystem, real_file_system
from powercut.calibrate.requirements import missing_requirements
from powercut.calibrate.write_log import Flush, Survivors

FAILS_ONCE: Final = "CD"
"""The first write that has a run of 16 of one of these letters fails."""
FAILS_AGAIN: Final = "E"
"""The second write that has such a run fails: a copy to another place, for instance."""

_RUN: Final = re.compile(rb"([CDE])\1{15}")
_FAILING_WRITE: Final = {b"C": 1, b"D": 1, b"E": 2}


class FailingImages(image_server.Images):
    """Images; one write with each letter of ``FAILS_ONCE`` and ``FAILS_AGAIN`` fails."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._writes: Counter[bytes] = Counter()

    def write(self, node: int, offset: int, data: bytes) -> None:
        letters = set(_RUN.findall(data))
        self._writes.update(letters)
        if any(self._writes[letter] == _FAILING_WRITE[letter] for letter in letters):
            raise OSError(errno.EIO, "the device has failed")
        super().write(node, offset, data)

    def create(self, name: str) -> None:
        """Make an image, to which the letters have not been written."""
        self._writes.clear()
        super().create(name)


def serve(commands: Connection, parent: int, size_bytes: int) -> None:
    """Serve such images, as ``image_server.serve``."""
    with patch.object(image_server, "Images", FailingImages):
        image_server.serve(commands, parent, size_bytes)


@contextmanager
def file_system_on_failing_images(name: str) -> Iterator[RealFileSystem]:
    """A file system of ``FILE_SYSTEMS``; skips the test if this machine cannot have it."""
    missing = missing_requirements([FILE_SYSTEMS[name]])
    if missing:
        pytest.skip("; ".join(missing))
    with (
        patch.object(image_device, "serve", serve),
        real_file_system(FILE_SYSTEMS[name]) as system,
    ):
        yield system


@contextmanager
def after_power_cut(system: RealFileSystem, length: int) -> Iterator[int]:
    """End the log, and mount the image that a power cut leaves.

    Of the first ``length`` requests, the device has kept those before the last flush.
    """
    requests = system.devices.end_log()[:length]
    last = max(number for number, each in enumerate(requests) if isinstance(each, Flush))
    system.devices.create_crash_image("crash", Survivors(last))
    try:
        with system.mounted("crash") as mounted:
            yield mounted
    finally:
        system.devices.remove("crash")
