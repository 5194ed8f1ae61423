"""The line of the program for each operation of a disk."""

from __future__ import annotations

from inspect import currentframe

from powercut.place import Place, Stack
from sim.disk.cache.operation import Operation
from sim.disk.disk import Disk


class PlaceRecorder:
    """Records in ``places`` the line of the program for each operation of ``disk``.

    It becomes the interposer of the disk, and passes each call on to the previous one.
    """

    def __init__(self, disk: Disk) -> None:
        self.places: dict[int, Place] = {}
        self._stack = Stack()
        self._behind = disk.interposer
        disk.interposer = self

    def here(self) -> Place | None:
        """Return the line of the program that is running."""
        return self._stack.place(currentframe())

    def before(self, operation: Operation, number: int) -> Operation:
        """Record the place of operation ``number``."""
        place = self._stack.place(currentframe())
        if place is not None:
            self.places[number] = place
        return operation if self._behind is None else self._behind.before(operation, number)

    def after(self, operation: Operation, number: int) -> None:
        """Pass it on."""
        if self._behind is not None:
            self._behind.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Pass it on: a read is no operation."""
        if self._behind is None:
            return data
        return self._behind.reading(path, inode, offset, data)
