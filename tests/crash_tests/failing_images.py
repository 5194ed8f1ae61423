"""A process that serves images of block devices, of which each fails one write."""

from __future__ import annotations

import errno
from multiprocessing.connection import Connection
from unittest.mock import patch

from powercut.calibrate import image_server

FAILS_ONCE = b"the device fails the first write that contains this"


class FailingImages(image_server.Images):
    """Images; the first write with ``FAILS_ONCE`` fails, and every later one succeeds."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._has_failed = False

    def write(self, node: int, offset: int, data: bytes) -> None:
        if FAILS_ONCE in data and not self._has_failed:
            self._has_failed = True
            raise OSError(errno.EIO, "the device has failed")
        super().write(node, offset, data)


def serve(commands: Connection, parent: int, size_bytes: int) -> None:
    """Serve such images, as ``image_server.serve``."""
    with patch.object(image_server, "Images", FailingImages):
        image_server.serve(commands, parent, size_bytes)
