"""Block devices whose content is in the memory of another process: the recorder's side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any

from powercut.calibrate.image_server import serve
from powercut.calibrate.loop_device import LoopDevice, attach, devices_over
from powercut.calibrate.write_log import LogEntry, Survivors
from powercut.fuse.mount import path_of
from sim.errors import HarnessError


class ImageServerDied(HarnessError):
    """The process that serves the images ended before the recording was done.

    Cause: it was killed, most often by the system for want of memory. Cure: look into the log of
    the system. Its images are gone, and every mount of them is gone with it.
    """


class ImageDevices:
    """Images by name, and loop devices over them."""

    def __init__(self, connection: Connection, mounted: int) -> None:
        self._connection = connection
        self._mounted = mounted

    def create(self, name: str) -> None:
        """Make an image with the content of the base."""
        self._ask("create", _file_name(name))

    def create_crash_image(self, name: str, survivors: Survivors) -> None:
        """Make an image of the logged device at its start and the writes that survive."""
        self._ask("create_crash_image", _file_name(name), survivors)

    def remove(self, name: str) -> None:
        """Forget an image, which must not be attached."""
        self._ask("remove", _file_name(name))

    def become_base(self, name: str) -> None:
        """Make the content of an image the base of the images to come."""
        self._ask("become_base", _file_name(name))

    def start_log(self, name: str) -> None:
        """Log the requests to an image from now on, in a new log."""
        self._ask("start_log", _file_name(name))

    def log_length(self) -> int:
        """Return the number of requests in the log."""
        length: int = self._ask("log_length")
        return length

    def end_log(self) -> list[LogEntry]:
        """Log no more requests; return the log."""
        log: list[LogEntry] = self._ask("end_log")
        return log

    @contextmanager
    def attached(self, name: str) -> Iterator[LoopDevice]:
        """A loop device over an image, for the duration of the context."""
        device = attach(f"{path_of(self._mounted)}/{_file_name(name)}")
        try:
            yield device
        finally:
            device.detach()

    def _ask(self, command: str, *arguments: object) -> Any:  # the result that the command has
        try:
            self._connection.send((command, arguments))
            return self._connection.recv()
        except (EOFError, ConnectionError):
            raise ImageServerDied("the process that serves the images ended") from None


@contextmanager
def image_devices(size_bytes: int) -> Iterator[ImageDevices]:
    """Images of ``size_bytes`` bytes, empty at first, until the context ends.

    Raises ``OSError`` if FUSE cannot be mounted.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs, os.getpid(), size_bytes), daemon=True)
    server.start()
    theirs.close()
    try:
        mounted = _mount_of(ours)
        try:
            yield ImageDevices(ours, mounted)
        finally:
            os.close(mounted)
    finally:
        ours.close()
        server.join()


def attached_devices(process: int) -> list[str]:
    """Return the loop devices that are attached to images of ``process``."""
    return devices_over(f".powercut-{process}")


def _file_name(name: str) -> str:
    return f"{name}.powercut-{os.getpid()}"


def _mount_of(server: Connection) -> int:
    try:
        refusal = server.recv()
        if refusal is not None:
            assert isinstance(refusal, OSError)
            raise refusal
        return recv_handle(server)
    except EOFError:
        raise ImageServerDied("the process that serves the images did not start") from None
