"""The simulated universe of one run: a disk, a clock, ids; and one host after the other.

A host lives from ``boot`` until ``kill``, ``cut_power`` or ``shut_down``. After that its
disk is poisoned: whoever still holds it gets ``PowerOff`` and changes nothing.
"""

from __future__ import annotations

from sim.choices import Choices, PlainChoices
from sim.clock import SimulatedClock
from sim.database import SimulatedDatabase
from sim.disk.crash_image import Image
from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.persistence import PersistenceModel, model_named
from sim.disk.survivors import SurvivorSet
from sim.errors import HarnessError
from sim.event_loop import SimulatedLoop
from sim.filesystem import SimulatedFileSystem
from sim.ids import SimulatedIds
from sim.outside import Outside
from sim.trace import Trace
from sim.workers import SimulatedWorkers
from system.ports import Host


class World:
    """``disk`` is a persistence model or its name; ``image`` is what the first boot finds.

    ``image`` is then what the next boot will find. ``trace``, if set, is told every
    operation of every lifetime when the lifetime ends, and the schedule as it happens.

    ``outside`` is what no crash touches: the ledger of the providers, and their faults.
    ``schedule`` decides which task runs next; the plainest run is first come, first served.
    """

    def __init__(
        self,
        choices: Choices,
        disk: PersistenceModel | str = "posix",
        image: Image | None = None,
    ) -> None:
        self.model = model_named(disk) if isinstance(disk, str) else disk
        self.image = image if image is not None else Image.empty()
        self.clock = SimulatedClock()
        self.ids = SimulatedIds(choices)
        self.outside = Outside()
        self.trace: Trace | None = None
        self.lifetimes = 0
        self._schedule: Choices = PlainChoices()
        self._disk: Disk | None = None
        self._loop: SimulatedLoop | None = None
        self._database: SimulatedDatabase | None = None

    @property
    def disk(self) -> Disk:
        """The running disk; ``HarnessError`` between two lifetimes."""
        if self._disk is None:
            raise HarnessError("no host is alive: boot() the world first")
        return self._disk

    @property
    def alive(self) -> bool:
        """Whether a host was booted and has not ended."""
        return self._disk is not None

    @property
    def loop(self) -> SimulatedLoop:
        """The event loop of this lifetime; ``HarnessError`` between two lifetimes."""
        if self._loop is None:
            raise HarnessError("no host is alive: boot() the world first")
        return self._loop

    @property
    def schedule(self) -> Choices:
        """What the event loop asks which task runs next; may be set at any time."""
        return self._schedule

    @schedule.setter
    def schedule(self, choices: Choices) -> None:
        self._schedule = choices
        if self._loop is not None:
            self._loop.choices = choices

    def boot(self) -> Host:
        """Start the next lifetime; ``HarnessError`` while the one before still lives."""
        if self._disk is not None:
            raise HarnessError("two hosts on one disk: end the first one before boot()")
        self.clock.boot()
        self.lifetimes += 1
        self._disk = disk = Disk(self.image, self.model, self.clock.wall_ns)
        self.handle = handle = Handle(disk)
        self._database = database = SimulatedDatabase(handle)
        self._loop = loop = SimulatedLoop(self.clock, self._schedule, disk)
        loop.trace = self.trace
        return Host(
            files=SimulatedFileSystem(handle),
            clock=self.clock,
            ids=self.ids,
            database=database,
            workers=SimulatedWorkers(),
        )

    def kill(self) -> None:
        """End the process; the page cache survives."""
        self._end(self.disk.snapshot())

    def stop(self) -> None:
        """End the process as ``kill`` does, for whoever cuts no power from here on."""
        self._end(self.disk.settled())

    def cut_power(self, survivors: SurvivorSet) -> None:
        """End the machine; of what is pending, ``survivors`` is left.

        Raises ``HarnessError`` if the persistence model does not allow them.
        """
        self._end(self.disk.power_cut(survivors))

    def _end(self, image: Image) -> None:
        disk, loop = self.disk, self.loop
        disk.power_off()
        if self._database is not None:
            self._database.abandon()
        if self.trace is not None:
            self.trace.note(f"lifetime {self.lifetimes}")
            self.trace.operations(disk.journal)
            self.trace.note(f"image {image.digest()}")
        self.image = image
        self._disk = self._loop = None
        loop.abandon()
