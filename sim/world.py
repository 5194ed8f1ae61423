"""The simulated machine of one run: a disk, a clock, ids, and one lifetime after the other.

A lifetime begins with ``boot`` and ends with ``kill``, ``stop`` or ``cut_power``. Then its
process is dead: every later call through it raises ``PowerOff`` and changes nothing, and the
next ``boot`` starts on the disk that the end has left::

    world = World(lambda boot: boot.process, SeededChoices(1))
    world.boot().mkdir("/d")
    all_lost = SurvivorSet(lost=tuple(range(len(world.disk.unsynced().micros))))
    world.cut_power(all_lost)
    assert world.boot().listdir("/") == []
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
    """The parts of the machine for one lifetime, from which ``make_host`` builds a host.

    ``process`` has the calls of ``os`` on the simulated disk. ``loop`` runs coroutines in
    virtual time; ``workers`` runs blocking calls for them. ``clock`` and ``ids`` belong to
    the world and go on in the next lifetime.

    ``on_end`` registers a function to be called once when the lifetime ends, in whatever
    way; the last one registered is called first. The disk is off by then. Use it to close
    objects that live outside of the disk, such as database connections.
    """

    process: Process
    loop: SimulatedLoop
    clock: SimulatedClock
    ids: SimulatedIds
    workers: SimulatedWorkers
    on_end: Callable[[Callable[[], None]], None]


class World(Generic[H]):
    """Boots ``make_host`` on one disk again and again.

    ``make_host`` receives the ``Boot`` of a lifetime and returns the host: the interface
    through which the system under test uses the machine. ``boot`` returns it. ``choices``
    seeds the ids. ``model`` is a persistence model or its name.

    ``image`` is the disk at the first boot, empty if not given; between two lifetimes it is
    the disk at the next boot. ``boots`` counts the lifetimes. ``schedule``, which may be set
    at any time, decides which task runs next; by default the first that is ready.
    ``trace``, if set, receives the schedule, and the operations of each lifetime at its end.

    Raises ``HarnessError`` for an unknown model.
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
        self._boot: Boot | None = None
        self._at_end: list[Callable[[], None]] = []

    @property
    def alive(self) -> bool:
        """Whether a lifetime has begun and not ended."""
        return self._boot is not None

    @property
    def process(self) -> Process:
        """The process of this lifetime; ``HarnessError`` between two lifetimes."""
        return self._running.process

    @property
    def disk(self) -> Disk:
        """The disk of this lifetime; ``HarnessError`` between two lifetimes."""
        return self._running.process.disk

    @property
    def loop(self) -> SimulatedLoop:
        """The event loop of this lifetime; ``HarnessError`` between two lifetimes."""
        return self._running.loop

    @property
    def schedule(self) -> Choices:
        """The choices that decide which task runs next."""
        return self._schedule

    @schedule.setter
    def schedule(self, choices: Choices) -> None:
        self._schedule = choices
        if self._boot is not None:
            self._boot.loop.choices = choices

    @property
    def _running(self) -> Boot:
        if self._boot is None:
            raise HarnessError("no host is alive: boot() the world first")
        return self._boot

    def boot(self) -> H:
        """Start the next lifetime and return its host; ``HarnessError`` while one is alive."""
        if self._boot is not None:
            raise HarnessError("two hosts on one disk: end the first one before boot()")
        assert not self._at_end, "the end of a lifetime has called them all"
        self.clock.boot()
        self.boots += 1
        disk = Disk(self.image, self.model, self.clock.wall_ns)
        loop = SimulatedLoop(self.clock, self._schedule, disk)
        loop.trace = self.trace
        self._boot = boot = Boot(
            Process(disk), loop, self.clock, self.ids, SimulatedWorkers(), self._at_end.append
        )
        return self._make_host(boot)

    def kill(self) -> None:
        """End the process; the page cache survives."""
        self._end(self.disk.snapshot())

    def stop(self) -> None:
        """End the process like ``kill``, with all unsynced operations made durable.

        Cheaper than ``kill``; use it where no power cut will follow.
        """
        self._end(self.disk.unmounted())

    def cut_power(self, survivors: SurvivorSet) -> None:
        """End the machine; of the unsynced operations, only ``survivors`` reach the platter.

        Raises ``HarnessError`` if the persistence model does not allow them.
        """
        self._end(self.disk.power_cut(survivors))

    def _end(self, image: Image) -> None:
        boot, disk = self._running, self.disk
        disk.power_off()
        while self._at_end:
            self._at_end.pop()()
        if self.trace is not None:
            self.trace.add(f"lifetime {self.boots}")
            self.trace.add_operations(disk.journal)
            self.trace.add(f"image {image.digest()}")
        self.image = image
        self._boot = None
        boot.loop.abandon()
