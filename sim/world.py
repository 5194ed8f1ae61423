"""The simulated machine of one run: a disk, a clock, ids, and one host per lifetime.

A host lives from ``boot`` until ``kill`` or ``cut_power``. After that its disk is poisoned:
every later call through it raises ``PowerOff`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sim.choices import Choices, PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import HarnessError
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from sim.loop.ids import SimulatedIds
from sim.loop.workers import SimulatedWorkers
from sim.trace import Trace

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Boot:
    """The parts of one lifetime, from which ``make_host`` builds a host.

    ``process`` is on the disk, ``loop`` runs the coroutines, ``workers`` the blocking calls.
    ``on_end`` registers a call that is made once when the lifetime ends, however it ends; it
    must not touch the disk.
    """

    process: Process
    loop: SimulatedLoop
    clock: SimulatedClock
    ids: SimulatedIds
    workers: SimulatedWorkers
    on_end: Callable[[Callable[[], None]], None]


class World(Generic[H]):
    """Boots ``make_host`` on one disk again and again, each time on the last crash image.

    ``make_host`` builds the system's door to the machine from a ``Boot``. ``model`` is a
    persistence model or its name; ``image`` is the disk of the first boot, and afterwards
    the disk of the next one. ``trace``, if set, receives all operations of a lifetime when
    it ends, and the schedule as it happens. ``schedule`` decides which task runs next; by
    default the first that is ready. ``boots`` counts the lifetimes.
    """

    def __init__(
        self,
        make_host: Callable[[Boot], H],
        choices: Choices,
        model: PersistenceModel | str = "posix",
        image: Image | None = None,
    ) -> None:
        self.model = model_named(model) if isinstance(model, str) else model
        self.image = image if image is not None else Image.empty()
        self.clock = SimulatedClock()
        self.ids = SimulatedIds(choices)
        self.trace: Trace | None = None
        self.boots = 0
        self._make_host = make_host
        self._schedule: Choices = PlainChoices()
        self._disk: Disk | None = None
        self._loop: SimulatedLoop | None = None
        self._process: Process | None = None
        self._at_end: list[Callable[[], None]] = []

    @property
    def disk(self) -> Disk:
        """The running disk; ``HarnessError`` between two lifetimes."""
        if self._disk is None:
            raise HarnessError("no host is alive: boot() the world first")
        return self._disk

    @property
    def process(self) -> Process:
        """The process on the running disk; ``HarnessError`` between two lifetimes."""
        if self._process is None:
            raise HarnessError("no host is alive: boot() the world first")
        return self._process

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

    def boot(self) -> H:
        """Start the next lifetime; ``HarnessError`` while the one before still lives."""
        if self._disk is not None:
            raise HarnessError("two hosts on one disk: end the first one before boot()")
        self.clock.boot()
        self.boots += 1
        self._disk = disk = Disk(self.image, self.model, self.clock.wall_ns)
        self._process = process = Process(disk)
        self._loop = loop = SimulatedLoop(self.clock, self._schedule, disk)
        loop.trace = self.trace
        return self._make_host(
            Boot(process, loop, self.clock, self.ids, SimulatedWorkers(), self._at_end.append)
        )

    def kill(self) -> None:
        """End the process; the page cache survives."""
        self._end(self.disk.snapshot())

    def stop(self) -> None:
        """End the process as ``kill`` does, when no power cut will follow.

        Cheaper than ``kill``: unsynced operations are counted as durable.
        """
        self._end(self.disk.unmounted())

    def cut_power(self, survivors: SurvivorSet) -> None:
        """End the machine; of the unsynced operations, ``survivors`` are on the platter.

        Raises ``HarnessError`` if the persistence model does not allow them.
        """
        self._end(self.disk.power_cut(survivors))

    def _end(self, image: Image) -> None:
        disk, loop = self.disk, self.loop
        disk.power_off()
        while self._at_end:
            self._at_end.pop()()
        if self.trace is not None:
            self.trace.add(f"lifetime {self.boots}")
            self.trace.add_operations(disk.journal)
            self.trace.add(f"image {image.digest()}")
        self.image = image
        self._disk = self._loop = self._process = None
        loop.abandon()
