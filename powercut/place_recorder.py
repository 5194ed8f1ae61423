"""The line of the program for each operation of a disk."""

from __future__ import annotations

from collections.abc import Collection
from inspect import currentframe

from powercut.place import Place, Stack
from sim.disk.disk import Disk


class PlaceRecorder:
    """Records in ``places`` the line of the program for each operation of ``disk``.

    ``adapters`` are source files that make the calls of the disk for the program; their lines
    are no places.
    """

    def __init__(self, disk: Disk, adapters: Collection[str] = ()) -> None:
        self.places: dict[int, Place] = {}
        self._stack = Stack(adapters)
        disk.observe(self._record)

    def here(self) -> Place | None:
        """Return the line of the program that is running."""
        return self._stack.place(currentframe())

    def _record(self, number: int) -> None:
        place = self._stack.place(currentframe())
        if place is not None:
            self.places[number] = place
