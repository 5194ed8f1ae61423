"""The process that holds the images of block devices and serves them through FUSE.

It is a process of its own, because a thread of the recorder would be stopped with it: a recorder
that waits for the kernel, which waits for the thread, cannot even be killed. When this process
ends, the kernel fails every request that waits for it, and nothing hangs.

``serve`` answers two sides in one loop: requests of the kernel, and commands of the recorder,
which are pairs of the name of a public method of ``Images`` and its arguments.
"""

from __future__ import annotations

import errno
import select
import signal
import stat
from collections.abc import Iterable
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any, Final

from powercut.calibrate.block_image import BlockImage
from powercut.calibrate.fuse_device import Attributes, DirectoryEntry, FuseDevice
from powercut.calibrate.write_log import LogEntry, Survivors, WriteLog
from powercut.fuse.messages import ROOT_NODE

_FILE: Final = stat.S_IFREG | 0o600
_ROOT: Final = Attributes(ROOT_NODE, stat.S_IFDIR | 0o700)


class Images:
    """A flat directory of image files, all of one size, each over the blocks of the base.

    Also the operations of the FUSE device. One image at a time may have a log.
    """

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._base: dict[int, bytes] = {}
        self._nodes: dict[str, int] = {}
        self._images: dict[int, BlockImage] = {}
        self._last_node = ROOT_NODE
        self._logged: int | None = None
        self._log = WriteLog({})

    # Commands of the recorder.

    def create(self, name: str) -> None:
        """Make an image with the content of the base."""
        self._add(name, BlockImage(self._base))

    def create_crash_image(self, name: str, survivors: Survivors) -> None:
        """Make an image of the logged device at its start and the writes that survive."""
        self._add(name, self._log.image(survivors))

    def remove(self, name: str) -> None:
        """Forget an image."""
        del self._images[self._nodes.pop(name)]

    def become_base(self, name: str) -> None:
        """Make the content of an image the base of the images to come."""
        self._base = self._images[self._nodes[name]].blocks()

    def start_log(self, name: str) -> None:
        """Log the requests to an image from now on, in a new log."""
        self._logged = self._nodes[name]
        self._log = WriteLog(self._images[self._logged].blocks())

    def log_length(self) -> int:
        """Return the number of requests in the log."""
        return len(self._log.entries)

    def end_log(self) -> list[LogEntry]:
        """Log no more requests; return the log."""
        self._logged = None
        return self._log.entries

    # Operations of the FUSE device.

    def lookup(self, parent: int, name: str) -> Attributes:
        if parent != ROOT_NODE or name not in self._nodes:
            raise OSError(errno.ENOENT, name)
        return self.attributes(self._nodes[name])

    def attributes(self, node: int) -> Attributes:
        return _ROOT if node == ROOT_NODE else Attributes(node, _FILE, self._size_bytes)

    def truncate(self, node: int, size: int) -> None:
        del node
        if size != self._size_bytes:
            raise OSError(errno.EPERM, "an image has one size")

    def open(self, node: int, flags: int) -> None:
        del node, flags

    def read(self, node: int, offset: int, size: int) -> bytes:
        return self._image(node).read(offset, max(0, min(size, self._size_bytes - offset)))

    def write(self, node: int, offset: int, data: bytes) -> None:
        if offset + len(data) > self._size_bytes:
            raise OSError(errno.ENOSPC, "the write ends behind the device")
        self._image(node).write(offset, data)
        if node == self._logged:
            self._log.write(offset, data)

    def fsync(self, node: int) -> None:
        if node == self._logged:
            self._log.flush()

    def entries(self, node: int) -> Iterable[DirectoryEntry]:
        if node != ROOT_NODE:
            raise OSError(errno.ENOTDIR, "an image is not a directory")
        return [DirectoryEntry(name, at, _FILE) for name, at in self._nodes.items()]

    def _image(self, node: int) -> BlockImage:
        image = self._images.get(node)
        if image is None:
            raise OSError(errno.EIO, "the image was removed")
        return image

    def _add(self, name: str, image: BlockImage) -> None:
        self._last_node += 1
        self._nodes[name] = self._last_node
        self._images[self._last_node] = image


def serve(commands: Connection, parent: int, size_bytes: int) -> None:
    """Serve images until the recorder, process ``parent``, closes ``commands`` or ends.

    First sends the descriptor of the mount, or the ``OSError`` that mounting raised.
    """
    # A terminal sends its signals to all processes. The recorder needs its images to clean up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    images = Images(size_bytes)
    try:
        device = FuseDevice(images)
        mounted = device.mount()
    except OSError as error:
        commands.send(error)
        return
    commands.send(None)
    send_handle(commands, mounted, parent)
    poll = select.poll()
    poll.register(device.fileno(), select.POLLIN)
    poll.register(commands.fileno(), select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if device.fileno() in ready and not device.serve():
            return
        if commands.fileno() in ready and not _obey(images, commands):
            return


def _obey(images: Images, commands: Connection) -> bool:
    try:
        name, arguments = commands.recv()
    except (EOFError, OSError):
        return False
    result: Any = getattr(images, name)(*arguments)
    commands.send(result)
    return True
