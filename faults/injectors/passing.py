"""What every injector does with a call that its rule leaves alone: it passes it on.

It is a base class, against the habit of this house: six calls that forward, written out
in each injector, would hide the one or two that do something.
"""

from __future__ import annotations

from typing import Protocol

from sim.disk.cache.operation import Operation
from sim.disk.disk import Disk


class Injector(Protocol):
    """Stands between a program and its disks, one lifetime after the other.

    It is an ``Interposer`` and a ``DescriptorInterposer`` of the disk.
    """

    def boot(self, disk: Disk) -> None:
        """Begin a lifetime on ``disk``; what the injector did to the data stays done."""
        ...

    def before(self, operation: Operation, number: int) -> Operation:
        """See ``Interposer.before``."""
        ...

    def after(self, operation: Operation, number: int) -> None:
        """See ``Interposer.after``; raises nothing."""
        ...

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """See ``Interposer.reading``."""
        ...

    def opening(self, path: str, descriptors: int) -> None:
        """See ``DescriptorInterposer.opening``."""
        ...

    def closing(self, path: str, inode: int) -> None:
        """See ``DescriptorInterposer.closing``."""
        ...


class Nothing:
    """The end of every chain: lets everything through."""

    __slots__ = ()

    def boot(self, disk: Disk) -> None:
        """Need no disk."""

    def before(self, operation: Operation, _number: int) -> Operation:
        """Change nothing."""
        return operation

    def after(self, operation: Operation, number: int) -> None:
        """Note nothing."""

    def reading(self, _path: str, _inode: int, _offset: int, data: bytes) -> bytes:
        """Change nothing."""
        return data

    def opening(self, path: str, descriptors: int) -> None:
        """Refuse nothing."""

    def closing(self, path: str, inode: int) -> None:
        """Refuse nothing."""


class Passing:
    """Passes every call on to the injector behind it."""

    __slots__ = ("behind",)

    def __init__(self, behind: Injector) -> None:
        self.behind = behind

    def boot(self, disk: Disk) -> None:
        """Pass it on."""
        self.behind.boot(disk)

    def before(self, operation: Operation, number: int) -> Operation:
        """Pass it on."""
        return self.behind.before(operation, number)

    def after(self, operation: Operation, number: int) -> None:
        """Pass it on."""
        self.behind.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Pass it on."""
        return self.behind.reading(path, inode, offset, data)

    def opening(self, path: str, descriptors: int) -> None:
        """Pass it on."""
        self.behind.opening(path, descriptors)

    def closing(self, path: str, inode: int) -> None:
        """Pass it on."""
        self.behind.closing(path, inode)
