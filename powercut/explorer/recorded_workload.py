"""Recorded workloads: a journal, what was acknowledged when, and the lines of the program.

``record`` runs a workload once. A recorded workload may also come from elsewhere, for instance
from a program in another process: then places are missing where nothing is known of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import currentframe

from oracles.history import History
from powercut.place import Place, Stack
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError

Workload = Callable[[Process, History], None]


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """One lifetime of a program.

    ``history`` has the values that it acknowledged, ``places`` the line of the program for the
    numbers of those operations where it is known.
    """

    journal: Journal
    history: History
    places: Mapping[int, Place] = field(default_factory=dict)


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


def record(workload: Workload, model: PersistenceModel, image: Image) -> RecordedWorkload:
    """Run ``workload`` once on a disk that starts from ``image``, and return its record.

    Raises ``HarnessError`` for a workload that fails by itself.
    """
    disk = Disk(image, model)
    recorder = PlaceRecorder(disk)
    history = History(lambda: disk.operations, recorder.here)
    try:
        workload(Process(disk), history)
    except HarnessError:
        raise
    except Exception as error:
        raise HarnessError(
            f"the workload failed before any crash: {type(error).__name__}: {error}"
        ) from error
    return RecordedWorkload(disk.journal, history, recorder.places)
