"""A real file system on block devices in memory, made once and mounted often."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from powercut.calibrate.background import touch_helper
from powercut.calibrate.file_system import FileSystem, Kind
from powercut.calibrate.image_device import ImageDevices, image_devices
from powercut.calibrate.requirements import command_path
from powercut.fuse.mount import mount, path_of, sync_file_system
from sim.errors import HarnessError

_STALE_BYTES: Final = 12 << 20
_BTRFS_FORGET_DEVICE: Final = 0x50009405


class CannotRecord(HarnessError):
    """A file system cannot be made and mounted on this machine.

    Cause: the kernel or its tools refuse it, for the reason in the message. Cure: remove the
    reason, or leave out this file system.
    """


class RealFileSystem:
    """Images of one file system, which start as a copy of its empty state."""

    def __init__(self, file_system: FileSystem, devices: ImageDevices) -> None:
        """Make the file system; raises ``OSError`` or ``subprocess.CalledProcessError``."""
        self.file_system = file_system
        self.devices = devices
        self._make_base()

    @contextmanager
    def mounted(self, name: str) -> Iterator[int]:
        """The descriptor of the mount of an image, for the duration of the context."""
        with self.devices.attached(name) as device, self._mounted_device(device.path) as mounted:
            yield mounted

    def _make_base(self) -> None:
        """Make the file system, and leave the letter S in blocks that are free."""
        self.devices.create("base")
        with self.devices.attached("base") as device:
            name, *options = self.file_system.mkfs
            command = [command_path(name) or name, *options, device.path]
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - mkfs, our device
        with self.mounted("base") as mounted:
            root = path_of(mounted)
            touch_helper(root)
            stale = f"{root}/stale"
            with open(stale, "wb") as file:
                file.write(b"S" * _STALE_BYTES)
                file.flush()
                os.fsync(file.fileno())
            os.unlink(stale)
            sync_file_system(root)
        self.devices.become_base("base")
        self.devices.remove("base")

    @contextmanager
    def _mounted_device(self, path: str) -> Iterator[int]:
        system = self.file_system
        mounted = mount(system.kind.value, path, system.options)
        try:
            yield mounted
        finally:
            os.close(mounted)
            if system.kind is Kind.BTRFS:
                _forget_btrfs(path)


@contextmanager
def real_file_system(file_system: FileSystem) -> Iterator[RealFileSystem]:
    """A file system of this machine. Afterwards its devices, mounts and images are gone.

    Raises ``CannotRecord``.
    """
    with ExitStack() as stack:
        try:
            devices = stack.enter_context(image_devices(file_system.size_bytes))
            made = RealFileSystem(file_system, devices)
        except OSError as error:
            raise CannotRecord(f"cannot record {file_system.name}: {error}") from None
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.decode(errors="replace").split())
            reason = f"{file_system.mkfs[0]} failed: {said}"
            raise CannotRecord(f"cannot record {file_system.name}: {reason}") from None
        yield made


def _forget_btrfs(path: str) -> None:
    """Remove an unmounted device from the list that btrfs keeps of all that it has seen."""
    arguments = bytearray(bytes(8) + path.encode().ljust(4088, b"\0"))
    control = os.open("/dev/btrfs-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # Newer kernels keep no unmounted device.
            fcntl.ioctl(control, _BTRFS_FORGET_DEVICE, arguments)
    finally:
        os.close(control)
